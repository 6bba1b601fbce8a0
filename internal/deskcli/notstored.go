package deskcli

import (
	"context"
	"fmt"
	"time"

	"docket/internal/archive"
	"docket/internal/config"
	"docket/internal/reader"
)

// shelfPatience is how long the names of archives may take.
const shelfPatience = 10 * time.Second

// places are where a decision that is not stored was looked for, and where it was not, each with what would look there.
type places struct{ looked, not []string }

// lookedFor says where a decision was looked for that is not stored. unknown says why the ledger was not searched.
func (s *session) lookedFor(ctx context.Context, id, unknown string) places {
	p := places{looked: []string{"the rows of decision_logs"}}
	if unknown == "" {
		p.looked = append(p.looked, "the ledger of dead letters")
	} else {
		p.not = append(p.not, unknown)
	}
	p.not = append(p.not, "records that are parked, spooled, dead-lettered but not in the ledger yet, or not read yet: docket where-is "+shell(id))
	where := config.Lookup(s.env.Program, s.env.Environ, "DOCKET_ARCHIVE_TO")
	if where == "" {
		p.not = append(p.not, "archives: DOCKET_ARCHIVE_TO is not set")
		return p
	}
	switch days, err := s.archivedDays(ctx, where); {
	case err != nil:
		p.not = append(p.not, fmt.Sprintf("archives in %s: %v", where, err))
	case len(days) == 0:
		p.looked = append(p.looked, "archives in "+where+", which has none of decisions")
	case len(days) == 1:
		p.not = append(p.not, fmt.Sprintf("an archived day, %s, in %s: docket restore --day %[1]s", days[0], where))
	default:
		p.not = append(p.not, fmt.Sprintf("%s from %s to %s in %s: docket archive list, docket restore --day DAY", counted(int64(len(days)), "archived day"), days[0], days[len(days)-1], where))
	}
	return p
}

func (s *session) archivedDays(ctx context.Context, where string) ([]archive.Day, error) {
	ctx, cancel := context.WithTimeout(ctx, shelfPatience)
	defer cancel()
	shelf, let, err := s.shelf(where)
	if err != nil {
		return nil, err
	}
	defer let()
	return archive.Days(ctx, shelf, s.sys.Days.Name())
}

// absent says that a decision is not in the table, where it was looked for, and where not.
func (s *session) absent(id string, p places) {
	s.tell("%s: no decision %s is stored\n", s.env.Program, plain(id))
	for _, place := range p.looked {
		s.tell("  looked at: %s\n", plainAll(place))
	}
	for _, place := range p.not {
		s.tell("  not looked at: %s\n", plainAll(place))
	}
	s.tell("  if the id is shortened, give its first %d or more characters\n", reader.LeastID)
}
