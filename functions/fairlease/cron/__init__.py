"""Renders the schedules of function folders for those who keep the time: pg_cron and Kubernetes."""
