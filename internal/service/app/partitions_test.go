package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/errclass"
	"docket/internal/service/config"
	"docket/internal/testkit/output"
)

// keeping runs the loop alone, in virtual time, for so long, and gives the times at which partitions were made.
func keeping(t *testing.T, program config.Program, ahead int, span time.Duration, made func(call int) (int, error)) (at []time.Duration, log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var buffer output.Buffer
		began := time.Now()
		db := &fakeDB{partitions: func(n int) (int, error) {
			if n != ahead {
				t.Errorf("asked for %d days", n)
			}
			at = append(at, time.Since(began))
			return made(len(at))
		}}
		p := &Program{name: program, settings: config.Settings{PartitionsAhead: ahead}, log: zerolog.New(&buffer), parts: &Parts{Database: db}}
		ctx, stop := context.WithCancel(t.Context())
		migrated, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			p.keepPartitions(ctx, migrated)
		}()
		time.Sleep(time.Second)
		if len(at) > 0 {
			t.Error("partitions were made before the first attempt to migrate")
		}
		close(migrated)
		time.Sleep(span)
		stop()
		<-ended
		log = buffer.String()
	})
	return at, log
}

func TestPartitions_AtTheStartAndEachHour(t *testing.T) {
	t.Parallel()
	at, log := keeping(t, config.Consumer, 7, 150*time.Minute, func(call int) (int, error) { return 3 - call, nil })
	if len(at) != 3 || at[0] != time.Second || at[2] != 2*time.Hour+time.Second {
		t.Errorf("made at %v", at)
	}
	if n := strings.Count(log, "table partitions created"); n != 2 {
		t.Errorf("%d lines in\n%s", n, log)
	}
}

func TestPartitions_FailureIsALineAndARetry(t *testing.T) {
	t.Parallel()
	at, log := keeping(t, config.Consumer, 7, 20*time.Minute, func(call int) (int, error) {
		if call <= 2 {
			return 0, errclass.As(errors.New("away"), errclass.CodeNetwork)
		}
		return 0, nil
	})
	if len(at) != 3 || at[2] != 10*time.Minute+time.Second {
		t.Errorf("tried at %v", at)
	}
	if n := strings.Count(log, `"level":"warn"`); n != 2 || !strings.Contains(log, `"code":"network"`) {
		t.Errorf("%d warnings in\n%s", n, log)
	}
}

func TestPartitions_OffByZero(t *testing.T) {
	t.Parallel()
	none := func(int) (int, error) { return 0, nil }
	if at, _ := keeping(t, config.Consumer, 0, 3*time.Hour, none); len(at) > 0 {
		t.Error("made although the setting is 0")
	}
	if at, _ := keeping(t, config.Replayer, 7, 3*time.Hour, none); len(at) > 0 {
		t.Error("the replayer makes them too")
	}
}
