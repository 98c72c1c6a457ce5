"""A report as one page that opens anywhere: no network, no other file; see `kvcalc.output.report.page`."""
