// Command s3 is the S3 server that tests use: versitygw on a folder, and nothing of its other storages. Those are the
// clients of whole clouds, and a fifth of what its own program compiles.
//
//	s3 -port 127.0.0.1:9000 -access key -secret secret -sidecar metadata objects
//
// All other settings are those of versitygw's own program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	config := embedgw.Config{MaxConnections: 250_000, MaxRequests: 100_000, MultipartMaxParts: 10_000, Quiet: true}
	port := flag.String("port", "", "address to listen on")
	flag.StringVar(&config.RootUserAccess, "access", "", "access key")
	flag.StringVar(&config.RootUserSecret, "secret", "", "its secret")
	sidecar := flag.String("sidecar", "", "folder of what is known of the objects")
	flag.Parse()
	config.Ports = []string{*port}
	if err := serve(&config, *sidecar, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

func serve(config *embedgw.Config, sidecar, objects string) error {
	known, err := meta.NewSideCar(sidecar)
	if err != nil {
		return fmt.Errorf("open the sidecar: %w", err)
	}
	const copyWhole = 5 << 30
	backend, err := posix.New(objects, known, posix.PosixOpts{SideCarDir: sidecar, CopyObjectThreshold: copyWhole})
	if err != nil {
		return fmt.Errorf("open the objects: %w", err)
	}
	return embedgw.RunVersityGW(context.Background(), backend, config)
}
