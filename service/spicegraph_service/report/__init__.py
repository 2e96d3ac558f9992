"""Error reports: what systems score and what they get wrong, as HTML, JSON and Markdown."""

from spicegraph_service.report.build import ReportOptions, build_report
from spicegraph_service.report.data import Report
from spicegraph_service.report.render import REPORT_FORMATS, ReportFormat

__all__ = ["REPORT_FORMATS", "Report", "ReportFormat", "ReportOptions", "build_report"]
