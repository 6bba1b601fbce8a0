// Package jobs has the commands on jobs: list, show, stop, resume. A [Follower] follows a job that another command has created.
package jobs
