"""The licences of what is shipped or fetched: ``python -m sandbox.licences`` writes the page.

They are what each part says of itself. Names become SPDX's where that is plain; what stays unknown
is looked up by a person, in the part's own files.
"""
