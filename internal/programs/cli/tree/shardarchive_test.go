package tree

import (
	"path/filepath"
	"strings"
	"testing"
)

// In a shard, commands on archives work where answers look: in the folder of the shard. A flag names a place as it is.
func TestShards_ArchiveOfTheShard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"settings": {nil, "b"},
		"a flag":   {[]string{"--from", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			w, _, _ := inShards("DOCKET_SHARD=b", "DOCKET_ARCHIVE_TO="+root)
			w.days = young{}
			args := append([]string{"archive", "list"}, c.args...)
			if len(c.args) > 0 {
				args[len(args)-1] = root
			}
			r := w.call(args...)
			opened := ""
			if len(w.opened) == 1 {
				opened = w.opened[0]
			}
			if opened != filepath.Join(root, c.want) || strings.Contains(r.err, "DOCKET_SHARD") {
				t.Errorf("exit %d, opened %q, %s", r.code, w.opened, r.err)
			}
		})
	}
}
