package shards

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Range is the partitions First to Last, both included.
type Range struct{ First, Last int32 }

// Has reports whether a partition is in the range.
func (r Range) Has(partition int32) bool { return r.First <= partition && partition <= r.Last }

func (r Range) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Ranges are ranges in ascending order, without an overlap.
type Ranges []Range

// Has reports whether a partition is in one of the ranges.
func (rs Ranges) Has(partition int32) bool {
	return slices.ContainsFunc(rs, func(r Range) bool { return r.Has(partition) })
}

// Below returns the partitions of the ranges that are lower than n, in ascending order. A topic with n partitions has
// no others.
func (rs Ranges) Below(n int32) []int32 {
	var all []int32
	for _, r := range rs {
		for p := r.First; p <= r.Last && p < n; p++ {
			all = append(all, p)
		}
	}
	return all
}

// String returns the ranges in the form of the setting, with + between them.
func (rs Ranges) String() string {
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = r.String()
	}
	return strings.Join(texts, "+")
}

// Shard is a Postgres server and its partitions.
type Shard struct {
	Name   string
	Ranges Ranges
}

// Map is all shards, in the order of the setting. Its zero value is a Docket without shards.
type Map []Shard

// name is what may stand in the name of a topic, and on a command line.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,30}[a-z0-9])?$`)

// mostPartition limits the numbers of partitions. A Kafka cluster has far fewer.
const mostPartition = 1_000_000

// Parse reads entries like a=0-15. A name may come several times, with further ranges. The errors are all that is
// wrong: the form of an entry, an overlap, and partitions below the highest one that no shard has.
func Parse(entries []string) (Map, []error) {
	var m Map
	var wrong []error
	for _, text := range entries {
		of, r, err := parse(text)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		i := m.index(of)
		if i < 0 {
			i = len(m)
			m = append(m, Shard{Name: of})
		}
		m[i].Ranges = append(m[i].Ranges, r)
	}
	for i := range m {
		slices.SortFunc(m[i].Ranges, func(a, b Range) int { return int(a.First) - int(b.First) })
	}
	return m, append(wrong, m.faults(len(wrong) == 0)...)
}

func parse(text string) (of string, r Range, err error) {
	of, numbers, _ := strings.Cut(text, "=")
	if !name.MatchString(of) {
		return "", r, fmt.Errorf("entry %s has no valid name; write it like a=0-15, with 1 to 32 of a-z 0-9 _ - in the name", short(text))
	}
	first, last, several := strings.Cut(numbers, "-")
	if !several {
		last = first
	}
	from, errFrom := strconv.ParseInt(first, 10, 32)
	to, errTo := strconv.ParseInt(last, 10, 32)
	switch {
	case errors.Join(errFrom, errTo) != nil || from < 0:
		return "", r, fmt.Errorf("entry %s has no range of partitions; write it like %s=0-15", short(text), of)
	case to < from:
		return "", r, fmt.Errorf("entry %s has a range that ends before it begins", short(text))
	case to >= mostPartition:
		return "", r, fmt.Errorf("entry %s has a partition above %d", short(text), mostPartition-1)
	}
	return of, Range{int32(from), int32(to)}, nil
}

func short(text string) string {
	const most = 40
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strconv.QuoteToASCII(text)
}

// faults returns overlaps and gaps. Gaps are looked for if every entry could be read.
func (m Map) faults(gaps bool) (wrong []error) {
	type owned struct {
		Range
		of string
	}
	var all []owned
	for _, s := range m {
		for _, r := range s.Ranges {
			all = append(all, owned{r, s.Name})
		}
	}
	slices.SortStableFunc(all, func(a, b owned) int { return int(a.First) - int(b.First) })
	next, last := int32(0), owned{}
	for i, o := range all {
		switch {
		case i > 0 && o.First < next:
			wrong = append(wrong, fmt.Errorf("%s=%s and %s=%s overlap; a partition belongs to one shard", last.of, last.Range, o.of, o.Range))
		case gaps && o.First > next:
			wrong = append(wrong, fmt.Errorf("no shard has the partitions %s; give them to one", Range{next, o.First - 1}))
		}
		if o.Last >= next {
			next, last = o.Last+1, o
		}
	}
	return wrong
}

func (m Map) index(of string) int {
	return slices.IndexFunc(m, func(s Shard) bool { return s.Name == of })
}

// Shard returns the shard with a name.
func (m Map) Shard(of string) (Shard, bool) {
	if i := m.index(of); i >= 0 {
		return m[i], true
	}
	return Shard{}, false
}

// Owner returns the shard of a partition. It returns false if no shard has it.
func (m Map) Owner(partition int32) (Shard, bool) {
	for _, s := range m {
		if s.Ranges.Has(partition) {
			return s, true
		}
	}
	return Shard{}, false
}

// Names returns the names of all shards, in the order of the setting.
func (m Map) Names() []string {
	names := make([]string, len(m))
	for i, s := range m {
		names[i] = s.Name
	}
	return names
}

// Share is the part of a topic that one shard works on. A nil Share is all of it.
type Share struct {
	Shard Shard
	All   Map // with the shard
}

// Share returns the part of a shard, nil without shards. A name that the map does not have owns no partition.
func (m Map) Share(of string) *Share {
	if len(m) == 0 || of == "" {
		return nil
	}
	s, _ := m.Shard(of)
	return &Share{Shard: s, All: m}
}

// Has reports whether a partition is in the share.
func (s *Share) Has(partition int32) bool { return s == nil || s.Shard.Ranges.Has(partition) }

// Count returns how many of n partitions are in the share.
func (s *Share) Count(n int) int {
	if s == nil {
		return n
	}
	return len(s.Shard.Ranges.Below(int32(n)))
}

// Unowned returns those of n partitions that no shard has, in ascending order.
func (s *Share) Unowned(n int) []int32 {
	if s == nil {
		return nil
	}
	return s.All.Unowned(n)
}

// Unowned returns those of n partitions that no shard has, in ascending order.
func (m Map) Unowned(n int) (none []int32) {
	for p := range int32(n) {
		if _, owned := m.Owner(p); !owned {
			none = append(none, p)
		}
	}
	return none
}
