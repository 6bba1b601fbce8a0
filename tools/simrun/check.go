package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// check sees that seeds replay exactly: twice alone in new processes and once one after the other in a single process.
// Then it lets the process id decide something, and sees that the same comparison finds the difference.
func check(ctx context.Context, k *campaign) error {
	together, err := k.traced(ctx, k.first, k.n)
	if err != nil {
		return err
	}
	found := 0
	for seed := k.first; seed < k.first+k.n; seed++ {
		once, err := k.traced(ctx, seed, 1)
		again, err2 := k.traced(ctx, seed, 1)
		planted, err3 := k.traced(ctx, seed, 1, "-sim.chance")
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		if once[seed] != again[seed] || once[seed] != together[seed] {
			return fmt.Errorf("seed %d: alone %q, alone again %q, after others %q", seed, once[seed], again[seed], together[seed])
		}
		if planted[seed] != once[seed] {
			found++
		}
	}
	if found == 0 {
		return errors.New("the process id decided something, and nobody saw it")
	}
	fmt.Fprintf(k.out, "%d seeds, alone twice and one after the other: identical; with chance planted, %d went another way, as they should\n", k.n, found)
	return nil
}

// traced plays seeds in one process and returns their traces.
func (k *campaign) traced(ctx context.Context, first, n uint64, args ...string) (map[uint64]string, error) {
	output, err := k.process(ctx, append(args, "-sim.first="+strconv.FormatUint(first, 10), "-sim.schedules="+strconv.FormatUint(n, 10))...)
	p, bad := parse(output)
	switch {
	case bad != nil:
		return nil, bad
	case uint64(len(p.traces)) != n:
		return nil, errors.Join(fmt.Errorf("%d traces of %d schedules from seed %d: %s", len(p.traces), n, first, output), err)
	case p.last == nil || p.last.Exact != p.last.Schedules:
		return nil, errors.New("the binary does not play exactly")
	}
	return p.traces, nil // a schedule may fail: it has to fail each time
}
