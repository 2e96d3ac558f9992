"""Error reports: what systems score and what they get wrong, as HTML, JSON and Markdown."""

from spicegraph_service.report.build import ReportOptions, build_report
from spicegraph_service.report.data import Report
from spicegraph_service.report.images import Pictures, image_sources
from spicegraph_service.report.render import REPORT_FORMATS, ReportFormat, chunks, index, to_html

__all__ = [
    "REPORT_FORMATS",
    "Pictures",
    "Report",
    "ReportFormat",
    "ReportOptions",
    "build_report",
    "chunks",
    "image_sources",
    "index",
    "to_html",
]
