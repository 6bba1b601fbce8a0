package lookup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/fallback"
	"docket/internal/record/envelope"
)

// usualSpools are the default spools of the programs, in their working directory.
var usualSpools = []string{"spool/consumer", "spool/parking-replayer"}

// Spools returns the directories to search if the settings name dir.
func Spools(dir string) []string {
	switch {
	case dir == "":
		return nil
	case slices.Contains(usualSpools, dir):
		return usualSpools
	}
	return []string{dir}
}

// spoolRead is the result of reading one directory.
type spoolRead struct {
	dir    string
	id     string // as its program notes it; empty: it does not
	there  bool
	files  int
	broken []string // files that could not be read whole
	why    string   // why it was not read completely
}

// readSpools reads the directories on this host.
func (s *search) readSpools(ctx context.Context, limits Limits) {
	left := limits.Bytes
	for _, dir := range s.look.Spools {
		s.spools = append(s.spools, s.readSpool(ctx, strings.TrimSuffix(dir, "/"), &left))
	}
}

// noSpools reports whether no record waited in a spool of this host.
func (s *search) noSpools() bool {
	return !slices.ContainsFunc(s.spools, func(r spoolRead) bool { return r.files > 0 || r.why != "" })
}

func (s *search) readSpool(ctx context.Context, dir string, left *int64) spoolRead {
	read := spoolRead{dir: dir}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return read
	}
	read.there = true
	if err != nil {
		read.why = "it cannot be opened"
		return read
	}
	defer func() { _ = root.Close() }() // it was only read
	if read.id, err = fallback.IdentityOf(root.FS()); err != nil {
		read.why = "it cannot be read"
		return read
	}
	set := s.look.Settings
	read.files, read.broken, err = verify.EachSpooled(ctx, root.FS(), left, func(file string, r *kgo.Record) {
		where := Unread
		switch r.Topic {
		case set.KafkaParkingTopic:
			where = Parked
		case set.KafkaDLQTopic:
			where = Dead
		case set.KafkaParkingDLQTopic:
			where = Exhausted
		}
		for _, c := range s.claims(where, r) {
			if s.answers[c.id] == nil {
				continue
			}
			f := s.record(where, r, c)
			if f.Origin.Topic == r.Topic { // it names no other place, and has none in that topic yet
				f.Origin.Partition, f.Origin.Offset = envelope.NoPlace, envelope.NoPlace
			}
			f.Where, f.Name, f.To, f.Partition, f.Offset, f.Letter = Spooled, dir+"/"+file, r.Topic, envelope.NoPlace, envelope.NoPlace, ""
			s.found(c.id, f, c.body)
		}
	})
	switch {
	case errors.Is(err, verify.ErrSpoolBound):
		read.why = fmt.Sprintf("it holds more than %d bytes", s.look.Limits.withDefaults().Bytes)
	case ctx.Err() != nil:
		read.why = fmt.Sprintf("it timed out after %d files", read.files)
	case err != nil:
		read.why = "it cannot be read"
	}
	return read
}

// tellSpools says which spools were read, and what programs note of all others.
func (s *search) tellSpools(remote Noted) {
	var absent []string
	read := map[string]bool{} // by id
	for _, r := range s.spools {
		name := "the spool " + r.dir
		switch {
		case !r.there:
			absent = append(absent, r.dir)
			continue
		case r.why != "":
			s.missed(name, r.why)
		case len(r.broken) > 0:
			s.missed(name, fmt.Sprintf("%d of %d files cannot be read whole, the first is %s", len(r.broken), r.files, r.broken[0]))
		default:
			s.looked(name, fmt.Sprintf("%d files on this host", r.files))
		}
		read[r.id] = true
	}
	const others = "spools of consumers and replayers on other hosts"
	if !remote.Known {
		if len(absent) > 0 && len(absent) == len(s.spools) {
			s.lack(Gap{Name: "spools", Why: "there is no " + strings.Join(absent, " and no ") + " on this host: " + byHand, Far: true})
		} else {
			s.lack(Gap{Name: others, Why: "it is not known whether they have records: " + byHand, Far: true})
		}
		return
	}
	holding, more := remote.Note.Holding()
	elsewhere := len(slices.DeleteFunc(holding, func(id string) bool { return read[id] }))
	switch {
	case more:
		s.lack(Gap{Name: others, Why: fmt.Sprintf("more than %d may have records: %s", elsewhere, byHand), Spools: true})
	case elsewhere > 0:
		s.lack(Gap{Name: others, Why: fmt.Sprintf("%d may have records: %s", elsewhere, byHand), Spools: true})
	default:
		s.looked(others, "none has records, as each notes beside its offsets")
	}
	if before := remote.Note.Before(); !before.IsZero() {
		s.lack(Gap{Name: "spools of programs that wrote no notes until " + before.UTC().Format(time.RFC3339), Why: "no program says whether they have records: " + byHand, Far: true})
	}
}

const byHand = "`consumer where-is ID --spool DIR` on the host that has one"

// noted is what the programs note of their spools, as this search found it in Kafka.
func (s *search) noted() Noted {
	set := s.look.Settings
	for _, topic := range append(set.SourceTopics(), set.KafkaParkingTopic) {
		if at, there := s.positions[topic]; !there || at.err != nil {
			return Noted{}
		}
	}
	note, known := s.beside.Note()
	return Noted{note, known}
}
