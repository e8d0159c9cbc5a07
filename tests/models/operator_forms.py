# SPDX-License-Identifier: Apache-2.0
"""All forms of operators, by idea in the files forms_of_*.py; each is a network (form_tables.py) under its name."""
import forms_of_attention  # noqa: F401 each file adds its forms to the table
import forms_of_calls  # noqa: F401
import forms_of_convolutions  # noqa: F401
import forms_of_functions  # noqa: F401
import forms_of_maps  # noqa: F401
import forms_of_parameters  # noqa: F401
import forms_of_pools  # noqa: F401
import forms_of_tokens  # noqa: F401
from form_tables import FORMS, SIDE, network

__all__ = ["FORMS", "SIDE", "network"]
