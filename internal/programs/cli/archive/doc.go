// Package archive has the commands that move days to an archive and back: archive, its list and verify, and restore.
package archive
