"""What a trace shows, as one HTML file that opens anywhere: figures, tables, and where every number comes from."""

from gputwin.report.page import Section
from gputwin.report.report_input import ReportInput
from gputwin.report.sections.fidelity import fidelity_of
from gputwin.report.write import sections_of, write_report

__all__ = ["ReportInput", "Section", "fidelity_of", "sections_of", "write_report"]
