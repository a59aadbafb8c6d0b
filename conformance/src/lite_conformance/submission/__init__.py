"""Submission bundles: a zip file with the reports by which a backend conforms to profiles, and its verification."""
