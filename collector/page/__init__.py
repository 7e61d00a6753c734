"""The page: what agents did, what was graded and why, in a browser; read from the store of runs."""

from collector.page.page_config import PageConfig
from collector.page.page_server import PageServer
from collector.page.run_comparison import ComparedPart, compared_runs
from collector.page.run_view import test_case
from collector.page.views import Views

__all__ = ["ComparedPart", "PageConfig", "PageServer", "Views", "compared_runs", "test_case"]
