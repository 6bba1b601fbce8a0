// Command packages writes the deb and the rpm of an unpacked release. It is a module of its own, because nfpm has many
// dependencies that Docket does not need.
//
//	packages -release DIR -arch amd64 -version 1.2.3 -time 1700000000 -out DIR
//
// Equal folders, versions and times give equal files.
package main

import (
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

//go:embed nfpm.yaml scripts
var embedded embed.FS

// formats are the kinds of packages.
var formats = []string{"deb", "rpm"}

// order says what to package.
type order struct {
	release  string // the folder of the unpacked release
	arch     string // as Go names it
	version  string
	when     time.Time // of every file
	out      string    // the folder for the packages
	homepage string    // an address, or empty
}

func main() {
	var o order
	var seconds int64
	flag.StringVar(&o.release, "release", "", "`DIR` of the unpacked release")
	flag.StringVar(&o.arch, "arch", "", "architecture, as Go names it")
	flag.StringVar(&o.version, "version", "", "of the package, without v")
	flag.Int64Var(&seconds, "time", 0, "of every file, in seconds since 1970")
	flag.StringVar(&o.out, "out", "", "`DIR` for the packages")
	flag.StringVar(&o.homepage, "homepage", "", "address of the project")
	flag.Parse()
	o.when = time.Unix(seconds, 0).UTC()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(o order) error {
	if o.release == "" || o.arch == "" || o.version == "" || o.out == "" || o.when.Unix() <= 0 {
		return errors.New("-release, -arch, -version, -time and -out are required")
	}
	scripts, err := os.MkdirTemp("", "packages")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scripts) }()
	if err := os.CopyFS(scripts, embedded); err != nil {
		return err
	}
	for _, format := range formats {
		if err := pack(o, format, filepath.Join(scripts, "scripts")); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

// pack writes one package.
func pack(o order, format, scripts string) (err error) {
	info, err := infoOf(o, format, scripts)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	// A host of releases may write another character for ~ in the name of a file. Inside, the version keeps it.
	name := strings.ReplaceAll(packager.ConventionalFileName(info), "~", "-")
	file, err := os.Create(filepath.Join(o.out, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return packager.Package(info, file)
}

// infoOf reads nfpm.yaml. Its sources become paths below the release, and every file gets the same time.
func infoOf(o order, format, scripts string) (*nfpm.Info, error) {
	text, err := embedded.Open("nfpm.yaml")
	if err != nil {
		return nil, err
	}
	defer func() { _ = text.Close() }()
	config, err := nfpm.ParseWithEnvMapping(io.Reader(text), func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	info, err := config.Get(format)
	if err != nil {
		return nil, err
	}
	info.Arch, info.Version, info.MTime, info.Homepage = o.arch, o.version, o.when, o.homepage
	info.Scripts.PostInstall = filepath.Join(scripts, "postinstall.sh")
	info.Scripts.PreRemove = filepath.Join(scripts, "preremove.sh")
	info.Scripts.PostRemove = filepath.Join(scripts, "postremove.sh")
	named := map[string]bool{}
	for _, c := range info.Contents {
		if c.Source == "" {
			named[files.NormalizeAbsoluteDirPath(c.Destination)] = true
			continue
		}
		slash := strings.HasSuffix(c.Source, "/")
		c.Source = filepath.Join(o.release, c.Source)
		if slash {
			if err := sameTime(c.Source, o.when); err != nil {
				return nil, err
			}
		}
		c.FileInfo.MTime = o.when
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return nil, err
	}
	for _, c := range info.Contents { // nfpm gives the folders of a tree the mode of its files
		if folder := c.Type == files.TypeDir || c.Type == files.TypeImplicitDir; folder && !named[c.Destination] {
			c.FileInfo.Mode = 0o755
		}
	}
	return nfpm.WithDefaults(info), nil
}

// sameTime gives the files of a folder one time: nfpm takes that of a tree from the disk.
func sameTime(folder string, when time.Time) error {
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, when, when)
	})
}
