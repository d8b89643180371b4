"""Many runs: tables and figures as data, runs that can be stopped, one page.

`experiment` says what a table or figure is, `runner` makes its runs, `store` keeps them, `sections`
puts the paper's numbers beside ours, and `page` and `files` write that down. `program` is the main
function that all tables and figures have in common.
"""
