// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/ncnn.h"

#include "core/error.h"
#include "exporters/ncnn/student_net.h"
#include "formats/atomic_file.h"

namespace zsq::exporters {
namespace {

// ncnn's depthwise kernels and grouped convolutions are layers of their own.
void name_groups(const quant::Student& student, std::vector<ExecutesAs>& layers) {
  for (ExecutesAs& layer : layers) {
    const auto* conv =
        models::get_if<models::Conv2d>(student.graph[student.graph.id_of(layer.layer)]);
    if (!conv || conv->groups == 1 || layer.executes_as == "float") continue;
    layer.reason += "; " + std::to_string(conv->groups) + " groups";
  }
}

}  // namespace

ExportReport export_ncnn(const quant::Student& student, const std::filesystem::path& path,
                         const Metadata&, const ExportOptions&) {
  if (path.extension() != ".param")
    throw Error(ErrorCode::usage,
                "'" + path.string() + "': ncnn's files end in .param, with .bin beside it");
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  Plan plan = make_plan(student, sites);
  const ncnn::Net net = ncnn::student_net(student, plan);
  const std::string param = net.param_file(), bin = net.bin_file();
  std::filesystem::path beside = path;
  formats::write_atomically(beside.replace_extension(".bin"), bin);
  formats::write_atomically(path, param);
  name_groups(student, plan.layers);
  return {static_cast<std::int64_t>(param.size() + bin.size()), std::move(plan.layers)};
}

}  // namespace zsq::exporters
