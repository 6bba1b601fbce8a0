package cold

import "context"

// Listing is how many questions wait for a listing of the archived days.
func (d *Days) Listing() int { return d.listing.flights.waiters() }

// Taking is how many questions wait for an inventory.
func (d *Days) Taking() int { return d.taking.flights.waiters() }

// Finding is how many questions wait for the reading of an archive. One question waits once for each archive.
func (d *Days) Finding() int { return d.finding.waiters() }

func (f *flights[T]) waiters() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.all {
		n += one.waiting
	}
	return n
}

// Scans are readings of archives that questions share.
type Scans = scans

// Limits of the readings of an archive.
const (
	SearchWeight = searchWeight
	MostTogether = mostTogether
	MostReadings = mostReadings
)

// Join takes rows of the next reading. read gets a function that gives all takers a row, and says whether one needs more.
func (s *scans) Join(ctx context.Context, archive string, weight int, take func() error, read func(ctx context.Context, pass func() (more bool)) error) error {
	l := &lines{}
	t := &taker{ctx: ctx, weight: weight, patient: weight == searchWeight, maybe: func([]byte) bool { return true }, take: func(row, string) error { return take() }}
	return s.join(archive, t, func(ctx context.Context, takers []*taker) error {
		return read(ctx, func() bool {
			l.pass([]byte("{}"), "", row{}, takers)
			return needed(takers)
		})
	})
}

// Left is how many archives are being read.
func (s *scans) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.archives)
}
