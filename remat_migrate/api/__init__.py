"""What rules are written with; docs/how-to/write-a-rule.md shows how.

These names are what every rule needs. Further questions and changes are in the modules of this
package, each about one subject: `sites`, `statics`, `placement`, `policies`, `flag`, `code`,
`changes`, and `rewrites`. Import the last one where a fix is computed: few runs do.
"""

from ..analysis.names.module import Module
from ..analysis.project import Project
from ..analysis.sites.calls import uses_of
from ..analysis.sites.find_sites import sites_in
from ..analysis.sites.site import Site
from ..analysis.statics.required_arguments import find_statics
from ..rule import Confidence, Example, Fails, Finding, Fix, Related, Rule, Safety, Severity

__all__ = [
    "Confidence",
    "Example",
    "Fails",
    "Finding",
    "Fix",
    "Module",
    "Project",
    "Related",
    "Rule",
    "Safety",
    "Severity",
    "Site",
    "find_statics",
    "sites_in",
    "uses_of",
]
