"""What `mkdocs` needs beside `mkdocs.yml` to make a site of the pages."""
