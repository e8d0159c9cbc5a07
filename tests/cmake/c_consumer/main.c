// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <zsq/zsq.h>

int main(void) {
  zsq_job* job = NULL;
  char* error = NULL;
  if (zsq_job_new("instant", &job, &error) != ZSQ_OK) return 1;
  const zsq_status status = zsq_quantize(job, "no_such_file.onnx", "out", NULL, &error);
  printf("zsq %s, %s: %s\n", zsq_version(), zsq_status_name(status), error);
  const int as_expected = status == ZSQ_USAGE && strstr(error, "no_such_file.onnx") != NULL;
  zsq_free(error);
  zsq_job_free(job);
  return as_expected ? 0 : 1;
}
