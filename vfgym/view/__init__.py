"""Looking at runs: one self-contained page of HTML (`write_page`) shows every rollout, and what `report_run` says of all together."""

from vfgym.view.page import build_page, write_page
from vfgym.view.run_report import RunReport, report_run

__all__ = ["RunReport", "build_page", "report_run", "write_page"]
