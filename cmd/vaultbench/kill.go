package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// killRows kill vaultd again and again while it works, and then hold the service, the ledger and what was dropped against
// each other. internal/campaign does more of that, at exact points and with power cuts; this says how much work a death
// costs.
func (b *bench) killRows() []row {
	kills := b.of(200)
	const inFlight = bareWorkers // uploads
	const asked = 2 * bareBatch  // documents in registrations under way
	perKill := func(name string) func(sample) float64 {
		return func(s sample) float64 { return s.noted(name) / float64(kills) }
	}
	var rows []row
	for _, set := range []string{setNormal, setTiny} {
		rows = append(rows, row{ID: "kill-" + set, Goal: "G12", Title: fmt.Sprintf("kill -9 at %d moments, set %s", kills, set), A: side{"vaultd", b.kills(set, kills)}, Pairs: 1,
			Counts: []count{
				{"lost", more("lost"), "0", atMost(0)},
				{"archived under two numbers", more("duplicates"), "0", atMost(0)},
				{"registered without a record of it", more("unrecorded"), "0", atMost(0)},
				{"archived with other bytes than recorded, or with fewer", more("differ"), "0", atMost(0)},
				{"bodies that were cut off and stored as whole ones", more("taken_short"), "0", atMost(0)},
				{"deaths with work under way", more("under_way"), "told", nil},
				{"uploads begun again, a death", perKill("uploads_again"), fmt.Sprintf("<= %d", inFlight), atMost(inFlight)},
				{"documents registered again, a death", perKill("reregistered"), fmt.Sprintf("<= %d", asked), atMost(asked)},
				{"bodies that were cut off and refused", more("short"), "told", nil},
			}})
	}
	return rows
}

// lifeSpan bounds how long a process lives before it is killed.
const lifeSpan = 400 * time.Millisecond

func (b *bench) kills(set string, kills int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		folders, err := b.shelf(ctx, set)
		if err != nil {
			return s, err
		}
		objects := filepath.Join(dir, "objects")
		if err := os.Mkdir(objects, 0o700); err != nil {
			return s, err
		}
		svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true, Verify: true, Lax: true, Disk: objects})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		drop := filepath.Join(dir, "drop")
		in, err := b.install(ctx, dir, setup{URL: svc.URL, CA: svc.CA, Drops: []string{drop}})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, folders.takeBack(drop)) }()
		began, r := time.Now(), rand.New(rand.NewPCG(b.seed, 'k'))
		underWay := 0
		for n := range kills {
			portion := &shelf{dir: folders.dir, names: folders.names[n*len(folders.names)/kills : (n+1)*len(folders.names)/kills]}
			if err := portion.lend(drop); err != nil {
				return s, err
			}
			busy, err := in.shortLife(ctx, svc, time.Duration(r.Int64N(int64(lifeSpan))))
			if err != nil {
				return s, err
			}
			underWay += busy
		}
		p, err := in.start(ctx)
		if err != nil {
			return s, err
		}
		defer p.kill()
		if err := p.awaitKept(ctx, drop, folders); err != nil {
			return s, err
		}
		s = sample{Wall: time.Since(began), Docs: len(folders.names), In: folders.bytes}
		s.note("under_way", float64(underWay))
		if err := errors.Join(p.account(&s, beginning{}), svc.account(ctx, &s), p.stop()); err != nil {
			return s, err
		}
		return s, in.holdAgainst(ctx, svc, objects, &s)
	}
}

// shortLife lets the daemon live for a while and kills it. busy is 1 where the service heard of it during that life.
func (in *installation) shortLife(ctx context.Context, svc *fake, life time.Duration) (busy int, err error) {
	before, err := svc.Stats(ctx)
	if err != nil {
		return 0, err
	}
	p, err := in.start(ctx)
	if err != nil {
		return 0, err
	}
	defer p.kill()
	if _, err := p.ready(ctx); err != nil {
		return 0, err
	}
	if err := p.rest(ctx, life+time.Millisecond); err != nil {
		return 0, err
	}
	p.kill()
	after, err := svc.Stats(ctx)
	if after.Posts+after.Puts > before.Posts+before.Puts {
		busy = 1
	}
	return busy, err
}

// holdAgainst compares what the service holds, in the directory objects, with what the ledger says.
func (in *installation) holdAgainst(ctx context.Context, svc *fake, objects string, s *sample) (err error) {
	l, err := boltledger.Open(boltledger.Config{Dir: in.state})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	registered, err := svc.Clients(ctx)
	if err != nil {
		return err
	}
	archived, differ := 0, 0
	err = l.Entries(archive.Key{}, false, func(e ledger.Entry) error {
		registered[e.ID.String()] -= int(e.Posts)
		if e.State != ledger.Archived {
			return nil
		}
		archived++
		zip, err := os.ReadFile(filepath.Join(objects, string(e.Archived)+".zip"))
		if err != nil || int64(len(zip)) != e.Package.Size || archive.Sum(zip) != e.Package.SHA256 {
			differ++
		}
		return nil
	})
	if err != nil {
		return err
	}
	unrecorded := 0
	for _, n := range registered { // what the ledger has recorded and the service never heard of is no harm
		unrecorded += max(0, n)
	}
	t, err := svc.Stats(ctx)
	s.note("lost", float64(s.Docs-archived))
	s.note("differ", float64(differ))
	s.note("unrecorded", float64(unrecorded))
	s.note("uploads_again", float64(t.Puts-s.Docs))
	s.note("short", float64(t.ShortBodies))
	s.note("taken_short", float64(t.TakenShort))
	return err
}
