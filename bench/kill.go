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
// each other. internal/test/campaign does more of that, at exact points and with power cuts; this says how much work a death
// costs at most: what the life after it does again.
//
// What is done again was in flight: its intent was durable, its outcome was not. Of registrations that are two calls of a
// vault, a batch in each. Of uploads it is more than the eight under way, because nobody waits for the commit of an outcome:
// the next ones begin, as long as their intents are durable, which are those of 50 ms of work at most. So a death never costs
// more than comes in twice that time; how many this is depends on the machine, and is taken from the run itself.
func (b *bench) killRows() []row {
	const asked = 2 * bareBatch
	kills := b.scaleForQuick(200)
	perKill := func(name string) func(sample) float64 {
		return func(s sample) float64 { return s.figureNamed(name) / float64(kills) }
	}
	var rows []row
	for _, set := range []string{setNormal, setTiny} {
		rows = append(rows, row{ID: "kill-" + set, Goal: "G12", Title: fmt.Sprintf("kill -9 at %d moments, set %s", kills, set), A: side{"vaultd", b.kills(set, kills)}, Pairs: 1,
			Counts: []count{
				{"lost", figureOfRow("lost"), "0", atMost(0)},
				{"archived under two numbers", figureOfRow("duplicates"), "0", atMost(0)},
				{"registered without a record of it", figureOfRow("unrecorded"), "0", atMost(0)},
				{"archived with other bytes than recorded, or with fewer", figureOfRow("differ"), "0", atMost(0)},
				{"bodies that were cut off and stored as whole ones", figureOfRow("taken_short"), "0", atMost(0)},
				{"deaths with work under way", figureOfRow("under_way"), "told", nil},
				{"uploads begun again after the worst death, of the most begun in 0.1 s", func(s sample) float64 { return quotient(s.figureNamed("most_rebegun"), s.figureNamed("rush")) }, "<= 1", atMost(1)},
				{"uploads begun again, after the worst death", figureOfRow("most_rebegun"), "told", nil},
				{"documents registered again, after the worst death", figureOfRow("most_reregistered"), fmt.Sprintf("<= %d", asked), atMost(asked)},
				{"uploads begun again, a death", perKill("rebegun"), "told", nil},
				{"documents registered again, a death", perKill("reregistered"), "told", nil},
				{"bodies that were cut off and refused", figureOfRow("short"), "told", nil},
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
		in, err := b.installVaultd(ctx, dir, setup{URL: svc.URL, CA: svc.CA, Drops: []string{drop}})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, folders.takeBack(drop)) }()
		began, r := time.Now(), rand.New(rand.NewPCG(b.seed, 'k'))
		var t toll
		for n := range kills {
			portion := &shelf{dir: folders.dir, names: folders.names[n*len(folders.names)/kills : (n+1)*len(folders.names)/kills]}
			if err := portion.moveToDrop(drop); err != nil {
				return s, err
			}
			if err := in.shortLife(ctx, time.Duration(r.Int64N(int64(lifeSpan)))); err != nil {
				return s, err
			}
			if err := t.death(ctx, svc); err != nil {
				return s, err
			}
		}
		p, err := in.startDaemon(ctx)
		if err != nil {
			return s, err
		}
		defer p.kill()
		if err := p.awaitKept(ctx, drop, folders); err != nil {
			return s, err
		}
		s = sample{Wall: time.Since(began), Docs: len(folders.names), In: folders.bytes}
		if err := errors.Join(t.account(ctx, svc, &s), p.fillSample(&s, beginning{}), svc.account(ctx, &s), p.stop()); err != nil {
			return s, err
		}
		return s, in.holdAgainst(ctx, svc, objects, &s)
	}
}

// shortLife lets the daemon live for a while and kills it.
func (in *installation) shortLife(ctx context.Context, life time.Duration) error {
	p, err := in.startDaemon(ctx)
	if err != nil {
		return err
	}
	defer p.kill()
	if _, err := p.awaitReady(ctx); err != nil {
		return err
	}
	return p.rest(ctx, life+time.Millisecond)
}

// toll is what deaths cost, as the service sees it: the life after one does again what that has left in doubt.
type toll struct {
	was                   fakeStats // at the end of the life before
	underWay              int       // lives in which the service heard of the daemon
	rebegun, reregistered int       // in the life in which it was most
}

// death books a life that was ended.
func (t *toll) death(ctx context.Context, svc *fake) error {
	now, err := svc.Stats(ctx)
	if now.Posts+now.Puts > t.was.Posts+t.was.Puts {
		t.underWay++
	}
	t.life(now)
	return err
}

func (t *toll) life(now fakeStats) {
	t.rebegun = max(t.rebegun, now.Rebegun-t.was.Rebegun)
	t.reregistered = max(t.reregistered, now.Reregistered-t.was.Reregistered)
	t.was = now
}

// account books the life that was not ended, and notes all.
func (t *toll) account(ctx context.Context, svc *fake, s *sample) error {
	now, err := svc.Stats(ctx)
	t.life(now)
	s.noteFigure("under_way", float64(t.underWay))
	s.noteFigure("most_rebegun", float64(t.rebegun))
	s.noteFigure("most_reregistered", float64(t.reregistered))
	s.noteFigure("rebegun", float64(now.Rebegun))
	s.noteFigure("rush", float64(now.Rush))
	return err
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
	err = l.EntriesOldestFirst(func(e ledger.Entry) error {
		registered[e.ID.String()] -= int(e.Posts)
		if e.State != ledger.Archived {
			return nil
		}
		archived++
		zip, err := os.ReadFile(filepath.Join(objects, string(e.ArchivedRemote)+".zip"))
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
	s.noteFigure("lost", float64(s.Docs-archived))
	s.noteFigure("differ", float64(differ))
	s.noteFigure("unrecorded", float64(unrecorded))
	s.noteFigure("short", float64(t.ShortBodies))
	s.noteFigure("taken_short", float64(t.TakenShort))
	return err
}
