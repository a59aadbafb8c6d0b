"""Pages: self-contained HTML files about comparisons and graphs, which load nothing."""
