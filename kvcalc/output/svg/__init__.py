"""Charts as SVG that stands in a page: it is as wide as its place, and takes colours from the page.

Positions across are percentages and lengths down are pixels, so that a chart fills a phone as well as
a wide screen while its letters keep their size.  Curves lie in an inner drawing that is stretched.
"""
