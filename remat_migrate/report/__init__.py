"""What a run found, as text or JSON: one module per output format."""

from .content import Report, SiteRow

__all__ = ["Report", "SiteRow"]
