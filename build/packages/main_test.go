package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sassoftware/go-rpmutils"
)

// unpacked is the folder of a release, as build/release has it. The times of its files differ each time.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{
		"bin/docket": 0o755, "package/docket.env": 0o600, "package/systemd/docket-consumer.service": 0o666, "package/man1/docket.1.gz": 0o644,
		"package/docket.bash": 0o644, "package/docket.fish": 0o644, "package/_docket": 0o644, "deploy/systemd/docket.sysusers": 0o644,
		"LICENSE": 0o644, "THIRD_PARTY_LICENSES.txt": 0o644, "README.md": 0o644, "CHANGELOG.md": 0o644, "docs/install.md": 0o640, "docs/console/now.png": 0o644,
		"deploy/prometheus/docket.rules.yml": 0o644, "deploy/grafana/docket.json": 0o644,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("the file "+name+"\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// packed are the bytes of both packages of a release, by format.
func packed(t *testing.T, arch string) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	o := order{release: unpacked(t), arch: arch, version: "1.2.3~rc.1", when: time.Unix(1_700_000_000, 0).UTC(), out: out, homepage: "https://git.example/docket"}
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	names := map[string]map[string]string{
		"amd64": {"deb": "docket_1.2.3-rc.1_amd64.deb", "rpm": "docket-1.2.3-rc.1-1.x86_64.rpm"}, "arm64": {"deb": "docket_1.2.3-rc.1_arm64.deb", "rpm": "docket-1.2.3-rc.1-1.aarch64.rpm"},
	}
	all := map[string][]byte{}
	for format, name := range names[arch] {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		all[format] = text
	}
	return all
}

// want are the files with their modes. Those of one format alone begin with it.
var want = map[string]string{
	"/usr/bin/docket": "0755", "/etc/docket": "dir 0755", "/etc/docket/secrets": "dir 0700", "/etc/docket/docket.env": "0644",
	"/usr/lib/systemd/system/docket-consumer.service": "0644", "/usr/lib/sysusers.d/docket.conf": "0644", "/usr/share/man/man1/docket.1.gz": "0644",
	"/usr/share/bash-completion/completions/docket": "0644", "/usr/share/fish/vendor_completions.d/docket.fish": "0644",
	"deb /usr/share/zsh/vendor-completions/_docket": "0644", "rpm /usr/share/zsh/site-functions/_docket": "0644",
	"deb /usr/share/doc/docket/copyright": "0644", "rpm /usr/share/licenses/docket/LICENSE": "0644",
	"/usr/share/doc/docket/THIRD_PARTY_LICENSES.txt": "0644", "/usr/share/doc/docket/README.md": "0644", "/usr/share/doc/docket/CHANGELOG.md": "0644",
	"/usr/share/doc/docket/docs/install.md": "0644", "/usr/share/doc/docket/docs/console/now.png": "0644",
	"/usr/share/doc/docket/docket.rules.yml": "0644", "/usr/share/doc/docket/docket.json": "0644",
}

func wanted(format string) map[string]string {
	of := map[string]string{}
	for name, mode := range want {
		only, path, limited := strings.Cut(name, " ")
		switch {
		case !limited:
			of[name] = mode
		case only == format:
			of[path] = mode
		}
	}
	return of
}

// noSharedFolders removes the folders that nfpm.yaml does not name. Their mode must be 0755: a folder without x hides its files.
func noSharedFolders(t *testing.T, all map[string]string) map[string]string {
	t.Helper()
	folders := 0
	for name, mode := range all {
		if _, named := want[name]; named || !strings.HasPrefix(mode, "dir") {
			continue
		}
		if folders++; mode != "dir 0755" {
			t.Errorf("%s: %s", name, mode)
		}
		delete(all, name)
	}
	if folders == 0 {
		t.Error("no folder of a tree")
	}
	return all
}

func TestPackages_SameBytesTwice(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		first, again := packed(t, arch), packed(t, arch)
		for format := range first {
			if !bytes.Equal(first[format], again[format]) {
				t.Errorf("%s of %s is not the same", format, arch)
			}
		}
	}
}

func TestDeb_Contents(t *testing.T) {
	t.Parallel()
	members := arOf(t, packed(t, "amd64")["deb"])
	files, texts := tarOf(t, members["data.tar.gz"])
	if diff := cmp.Diff(wanted("deb"), noSharedFolders(t, files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if texts["/usr/bin/docket"] != "the file bin/docket\n" || texts["/etc/docket/docket.env"] != "the file package/docket.env\n" {
		t.Errorf("other contents: %q", texts)
	}
	_, control := tarOf(t, members["control.tar.gz"])
	if control["/conffiles"] != "/etc/docket/docket.env\n" {
		t.Errorf("conffiles: %q", control["/conffiles"])
	}
	for _, line := range []string{"Package: docket\n", "Version: 1.2.3~rc.1\n", "Architecture: amd64\n", "Depends: passwd\n", "Breaks: systemd (<< 247)\n", "Homepage: https://git.example/docket\n"} {
		if !strings.Contains(control["/control"], line) {
			t.Errorf("%q is not in\n%s", line, control["/control"])
		}
	}
	for script, has := range map[string]string{"/postinst": "systemd-sysusers docket.conf", "/prerm": "systemctl disable --now", "/postrm": "/var/lib/docket stays"} {
		if !strings.Contains(control[script], has) {
			t.Errorf("%s: %q", script, control[script])
		}
	}
}

func TestRPM_Contents(t *testing.T) {
	t.Parallel()
	r, err := rpmutils.ReadRpm(bytes.NewReader(packed(t, "arm64")["rpm"]))
	if err != nil {
		t.Fatal(err)
	}
	infos, err := r.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range infos {
		files[f.Name()] = modeOf(int64(f.Mode()&0o7777), f.Mode()&0o170000 == 0o040000)
		if f.UserName() != "root" || f.GroupName() != "root" || f.Mtime() != 1_700_000_000 {
			t.Errorf("%s of %s:%s at %d", f.Name(), f.UserName(), f.GroupName(), f.Mtime())
		}
		const kept = rpmutils.RPMFILE_CONFIG | rpmutils.RPMFILE_NOREPLACE
		if conf := f.Name() == "/etc/docket/docket.env"; conf != (f.Flags()&kept == kept) {
			t.Errorf("%s has the flags %b", f.Name(), f.Flags())
		}
	}
	if diff := cmp.Diff(wanted("rpm"), noSharedFolders(t, files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	conflicts, err := r.Header.GetStrings(rpmutils.CONFLICTNAME)
	if err != nil || !slices.Contains(conflicts, "systemd") {
		t.Errorf("conflicts %v, %v", conflicts, err)
	}
	versions, err := r.Header.GetStrings(rpmutils.CONFLICTVERSION)
	if err != nil || !slices.Contains(versions, "247") {
		t.Errorf("conflicts with the versions %v, %v", versions, err)
	}
	nevra, err := r.Header.GetNEVRA()
	if err != nil || nevra.Name != "docket" || nevra.Version != "1.2.3~rc.1" || nevra.Arch != "aarch64" {
		t.Errorf("%v, %v", nevra, err)
	}
}

func modeOf(mode int64, dir bool) string {
	text := fmt.Sprintf("%04o", mode)
	if dir {
		text = "dir " + text
	}
	return text
}

// arOf are the members of an ar archive.
func arOf(t *testing.T, text []byte) map[string][]byte {
	t.Helper()
	const magic, header = "!<arch>\n", 60
	members := map[string][]byte{}
	for rest := bytes.TrimPrefix(text, []byte(magic)); len(rest) >= header; {
		name := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || len(rest) < header+size {
			t.Fatalf("%s: %v", name, err)
		}
		members[name] = rest[header : header+size]
		rest = rest[min(header+size+size%2, len(rest)):]
	}
	return members
}

// tarOf are the modes and texts of the files of a gzipped tar. Every file is root's and of the one time.
func tarOf(t *testing.T, text []byte) (modes, texts map[string]string) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	modes, texts = map[string]string{}, map[string]string{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			return modes, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		name := "/" + strings.Trim(strings.TrimPrefix(h.Name, "."), "/")
		modes[name] = modeOf(h.Mode, h.Typeflag == tar.TypeDir)
		if h.Uid != 0 || h.Gid != 0 || strings.Trim(h.Uname+h.Gname, "rot") != "" || h.ModTime.Unix() != 1_700_000_000 {
			t.Errorf("%s: %d:%d %s:%s at %v", name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(content)
	}
}
