"""`relaunch dashboard`: a page on loopback with what the commands know, read with the credentials of whoever opens it.

`guard` says which requests are taken, `server` takes them, `application` answers them, `reader` reads from AWS no more
often than a page needs, `pages` say what each page shows, `templates` and `assets` how.
"""
