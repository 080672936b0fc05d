package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ingest"
)

const (
	brakeFloor  = 200 // disposals a day of one drop that are always usual
	brakeFactor = 3   // times the busiest day that are still usual
	brakeFading = 60  // days in which the memory of the busiest day fades by half
	brakeFile   = "disposals.json"
)

// brake bounds how much is disposed of without a person: per drop and day no more than a
// few times what its busiest days had. What it remembers lies in a file beside the
// ledger; where that is lost it knows of no busy days and stops earlier.
type brake struct {
	dir   string
	now   func() time.Time
	log   *slog.Logger
	floor int // disposals a day that are always usual

	mu    sync.Mutex
	paces map[string]*pace // by drop; nil: not read yet; guarded by mu
}

// pace is how much of one drop is disposed of.
type pace struct {
	Busiest  float64   `json:"busiest"`  // number of a busy day, fading
	Day      time.Time `json:"day"`      // that Done counts
	Done     int       `json:"done"`     // on that day
	Approved int       `json:"approved"` // that a person let go, and that are not done yet
}

func newBrake(dir string, now func() time.Time, log *slog.Logger) *brake {
	return &brake{dir: dir, now: now, log: log, floor: brakeFloor}
}

// take books the sources of a drop that are due, or says with an *ingest.BrakeError why they
// must not go. An error of the disk stops them as well: what was not booked would count
// for nothing.
func (b *brake) take(drop string, due int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pace(drop)
	usual := max(b.floor, int(brakeFactor*p.Busiest))
	switch {
	case due <= p.Approved:
		p.Approved -= due
	case p.Done+due > usual:
		return &ingest.DisposalLimitError{Drop: drop, Due: due, Usual: usual}
	}
	p.Done += due
	return b.save()
}

// approve lets n sources of a drop go, by a person's decision.
func (b *brake) approve(drop string, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pace(drop).Approved = n
	return b.save()
}

// pace returns a drop's, on the present day. The caller holds mu.
func (b *brake) pace(drop string) *pace {
	if b.paces == nil {
		b.paces = b.read()
	}
	today := b.now().UTC().Truncate(24 * time.Hour)
	p := b.paces[drop]
	if p == nil {
		p = &pace{Day: today}
		b.paces[drop] = p
	}
	if !p.Day.Equal(today) {
		p.Busiest = max(p.Busiest, float64(p.Done))
		if days := today.Sub(p.Day).Hours() / 24; days > 0 {
			p.Busiest *= math.Exp2(-days / brakeFading)
		}
		p.Day, p.Done = today, 0
	}
	return p
}

func (b *brake) read() map[string]*pace {
	paces := map[string]*pace{}
	data, err := os.ReadFile(filepath.Join(b.dir, brakeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return paces
	}
	if err == nil {
		err = json.Unmarshal(data, &paces)
	}
	if err != nil {
		b.log.Warn("how much is usually disposed of is not known any more; disposals stop earlier", "err", err)
		return map[string]*pace{}
	}
	for drop, p := range paces {
		if p == nil {
			delete(paces, drop)
		}
	}
	return paces
}

// save writes what is remembered. The caller holds mu.
func (b *brake) save() error {
	data, err := json.MarshalIndent(b.paces, "", "  ")
	if err != nil {
		return fmt.Errorf("remember disposals: %w", err)
	}
	dir, err := durable.Open(b.dir, nil)
	if err != nil {
		return fmt.Errorf("remember disposals: %w", err)
	}
	defer dir.Close() // synced by WriteFile
	if err := dir.WriteFile(brakeFile, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("remember disposals: %w", err)
	}
	return nil
}
