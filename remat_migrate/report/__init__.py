"""What a run found: one module per output format."""

from .content import Report, SiteRow

__all__ = ["Report", "SiteRow"]
