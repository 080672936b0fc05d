package recovery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/archive"
)

// AskEach asks about each number of a vault alone, several at once, and returns one receipt for each. A number that the
// archive does not know comes back as [archive.Absent].
//
// An answer that may say so (see [absence]) may also mean that the path is
// wrong. So the archive is asked something else about the vault after it: its
// list, or else its index. If neither is answered, the first such error is
// returned and nothing is concluded. If one is, the number is looked up in the
// list, or asked about once more: a fault that has passed meanwhile makes
// nothing absent.
func AskEach(ctx context.Context, s Service, v archive.VaultID, numbers []archive.RemoteID) ([]archive.Receipt, error) {
	told, unknown, err := askOnce(ctx, s, v, numbers)
	if err != nil || len(unknown) == 0 {
		return told, err
	}
	// The vault is asked something else only after the unknown answers: a path that was wrong before and is right now must
	// make nothing absent.
	w, err := s.ReadStatusList(ctx, v)
	if err != nil {
		if s.CheckIndex(ctx, v) != nil {
			return nil, unknown[slices.Min(slices.Collect(maps.Keys(unknown)))]
		}
	}
	listed := map[archive.RemoteID]archive.Receipt{}
	for _, rc := range w.Receipts {
		listed[rc.Remote] = rc
	}
	var open []archive.RemoteID
	var at []int // their places among the numbers
	for i, r := range numbers {
		rc, is := listed[r]
		switch {
		case unknown[i] == nil:
		case is:
			told[i] = rc
		default:
			open, at = append(open, r), append(at, i)
		}
	}
	// Now the vault has answered. Whoever still does not know the number says that the registration is absent.
	again, unknown, err := askOnce(ctx, s, v, open)
	for k, i := range at {
		if told[i] = again[k]; unknown[k] != nil {
			told[i] = archive.Receipt{Remote: numbers[i], Status: archive.Absent}
		}
	}
	return told, err
}

// absence is an error of a question. MayBeAbsent reports whether it is one of those with which the archive says that it does
// not know the number.
type absence interface {
	error
	MayBeAbsent() bool
}

// askOnce asks about each number. unknown holds, by their places, the faults of those that the archive may not know; any
// other fault is its error.
func askOnce(ctx context.Context, s Service, v archive.VaultID, numbers []archive.RemoteID) (told []archive.Receipt, unknown map[int]error, err error) {
	told, unknown = make([]archive.Receipt, len(numbers)), map[int]error{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(askers)
	var mu sync.Mutex
	for i, r := range numbers {
		g.Go(func() error {
			rc, err := s.Status(ctx, v, r)
			mu.Lock()
			defer mu.Unlock()
			if fault, is := errors.AsType[absence](err); is && fault.MayBeAbsent() {
				unknown[i] = err
				return nil
			}
			told[i] = rc
			return err
		})
	}
	return told, unknown, g.Wait()
}
