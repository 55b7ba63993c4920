"""What ``vf-eval`` is made of.

Where settings come from (`endpoints`, `files`, `fields`, `settings`), the runs themselves (`runs`), and what is printed about them
(`report`).
"""
