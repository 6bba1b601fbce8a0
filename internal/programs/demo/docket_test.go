package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/audit/conservation"
	"docket/sample"
)

// touch writes a file, and the folders that it is in.
func touch(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDocket_Found(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	built, odd, empty := filepath.Join(root, "built"), filepath.Join(root, "it's built"), filepath.Join(root, "empty")
	clone, other := filepath.Join(root, "clone"), filepath.Join(root, "other")
	touch(t, filepath.Join(built, "docket"), "", 0o755)
	touch(t, filepath.Join(odd, "docket"), "", 0o755)
	touch(t, filepath.Join(empty, "docket"), "not a program", 0o644)
	touch(t, filepath.Join(clone, "go.mod"), "module docket\n\ngo 1.25\n", 0o644)
	touch(t, filepath.Join(clone, "cmd", "docket", "main.go"), "", 0o644)
	touch(t, filepath.Join(clone, "docs", "design.md"), "", 0o644)
	touch(t, filepath.Join(other, "go.mod"), "module other\n", 0o644)
	touch(t, filepath.Join(other, "cmd", "docket", "main.go"), "", 0o644)
	inClone := Docket{Folder: clone, Command: "go run ./cmd/docket"}

	for name, c := range map[string]struct {
		self, folder string
		noGo         bool
		want         Docket
	}{
		"go run in the clone":             {filepath.Join(root, "cache", "consumer"), clone, false, inClone},
		"go run in a folder of the clone": {filepath.Join(root, "cache", "consumer"), filepath.Join(clone, "docs"), false, inClone},
		"built into the clone alone":      {filepath.Join(clone, "bin", "consumer"), root, false, inClone},
		"built beside docket":             {filepath.Join(built, "consumer"), clone, false, Docket{Command: filepath.Join(built, "docket")}},
		"a folder with a quote":           {filepath.Join(odd, "consumer"), clone, false, Docket{Command: "'" + root + `/it'\''s built/docket'`}},
		"a file that does not execute":    {filepath.Join(empty, "consumer"), clone, false, inClone},
		"a module of that layout":         {filepath.Join(other, "consumer"), other, false, Docket{Command: "docket"}},
		"no Go":                           {filepath.Join(clone, "consumer"), clone, true, Docket{Command: "docket"}},
		"unknown program and folder":      {"", "", false, Docket{Command: "docket"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := docketOf(c.self, c.folder, func(program string) (string, error) {
				if c.noGo || program != "go" {
					return "", exec.ErrNotFound
				}
				return "/usr/bin/go", nil
			})
			if name == "unknown program and folder" && got.Folder != "" {
				got = Docket{Command: "docket"} // the tests run in the clone
			}
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestCommands_Golden(t *testing.T) {
	t.Parallel()
	got := Docket{Folder: "/my clone", Command: "go run ./cmd/docket"}.commands("postgres://u:p@h:1/d?sslmode=disable", "h:2", "id")
	want := []string{
		"cd '/my clone'",
		"export DOCKET_DATABASE_URL='postgres://u:p@h:1/d?sslmode=disable' DOCKET_KAFKA_BROKERS=h:2 DOCKET_MAX_RECORD_BYTES=1024KiB",
		"go run ./cmd/docket why id",
		"go run ./cmd/docket logs --denied",
		"go run ./cmd/docket dlq groups",
		"go run ./cmd/docket state 127.0.0.1",
		"go run ./cmd/docket flips",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if got := (Docket{Command: "/bin/docket"}).commands("url", "h:2", "id"); len(got) != 6 || got[1] != "/bin/docket why id" {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestShellWord_Quotes(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"/plain/path-1", "with space", "it's", `back\slash`, "$HOME", "a;b", "~", "*", "\"", "new\nline", ""} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is %q in a shell, %v", word, out, err)
		}
	}
}

func TestCauses_EveryPlantedCode(t *testing.T) {
	t.Parallel()
	g, err := conservation.New(conservation.Config{
		Records: conservation.MinRecords, Seed: 1, Samples: sample.DecisionLogs(), MaxRecordBytes: maxRecordBytes, Start: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{"id_conflict": true} // two decisions that are fine by themselves
	for {
		r, more := g.Next()
		if !more {
			break
		}
		for _, d := range r.Decisions {
			if d.Code != "" {
				planted[d.Code] = true
			}
		}
	}
	for code := range planted {
		if causes[code] == "" {
			t.Errorf("no cause for %s", code)
		}
	}
	if len(planted) != len(causes) {
		t.Errorf("%d codes are planted, %d have a cause", len(planted), len(causes))
	}
}

func TestPrograms_String(t *testing.T) {
	t.Parallel()
	if got := (&programs{names: []string{Consumer, Replayer, Desk}}).String(); got != "consumer, parking-replayer, docket desk" {
		t.Errorf("%s", got)
	}
}

func TestStayUp_WithoutKeep(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &show{screen: newScreen(&out, false)}
	if err := s.stayUp(t.Context()); err != nil || !strings.Contains(out.String(), "--keep") {
		t.Errorf("%v: %s", err, out.String())
	}
}
