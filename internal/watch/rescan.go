package watch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// listing is what a session remembers of its rescans.
type listing struct {
	last    time.Time // when the last one began
	took    time.Duration
	soon    bool      // do not wait for the next regular one
	refill  bool      // half the places are free again, and folders wait for one
	cursor  int       // position in the directory from where folders are admitted while not all fit
	left    int       // folders that found no place
	changed time.Time // mtime of the drop folder at the last one
	events  int       // since the last one
	own     int       // of them about what vaultd has made itself
	strikes int       // rescans in a row that found changes no event told of
	lost    bool      // hints were lost since the last one that read everything
	bare    bare
}

// gap keeps a storm of overflows from becoming a storm of rescans, which take at most a fifth of the time then. One that
// fills half the places again need not wait: so many folders are taken for each.
const gap = time.Second

func (l *listing) due(rescan time.Duration) time.Time {
	switch {
	case l.last.IsZero() || l.refill:
		return l.last
	case l.soon:
		return l.last.Add(min(max(gap, 5*l.took), rescan))
	}
	return l.last.Add(rescan)
}

// listen starts events, or says why not.
func (s *session) listen() {
	fsName, err := network(s.cfg.Path)
	s.local = err == nil && fsName == ""
	mode, why := Poll, "configured"
	if s.cfg.Mode != Poll {
		mode, why = s.tryEvents(fsName)
	}
	s.setMode(mode, why)
}

func (s *session) tryEvents(fsName string) (Mode, string) {
	if fsName != "" && s.cfg.Mode == Auto {
		return Poll, "no events on network file systems (" + fsName + ")"
	}
	source, err := s.cfg.OpenEvents(s.cfg.Path)
	if err != nil {
		return Poll, "events do not start: " + err.Error()
	}
	s.events, s.stop = source.C, source.Stop
	return Events, "events work here"
}

func (s *session) setMode(mode Mode, why string) {
	s.mu.Lock()
	s.mode, s.why = mode, why
	s.mu.Unlock()
}

// deaf ends listening; from here on rescans alone find what is new.
func (s *session) deaf(why string) {
	s.stop()
	s.stop, s.events = func() {}, nil
	s.listing.soon = true
	s.setMode(Poll, why)
}

// eventsPerPass bounds how many hints are heeded before looks and takes go on.
const eventsPerPass = 4096

// heed acts on a hint and on those that wait behind it.
func (s *session) heed(e Event) {
	for n := 1; ; n++ {
		s.listing.events++
		if e.Name != "" && s.cfg.Reserved(e.Name) {
			s.listing.own++
		}
		switch {
		case e.Dead != nil:
			s.deaf("events ended: " + e.Dead.Error())
			s.verified = time.Time{}
			return
		case e.Overflow:
			s.listing.soon = true
			s.listing.lost = true // and so nobody knows what else happened
		case e.Name != "" && !e.IsOther:
			s.appeared(e.Name)
		}
		if n == eventsPerPass {
			return
		}
		select {
		case next, ok := <-s.events:
			if e = next; !ok {
				e.Dead = errors.New("the source of events ended")
			}
		default:
			return
		}
	}
}

// appeared puts a folder that just came, or whose rights changed, under observation even without a sidecar: the sidecar
// is often the last file to be copied.
func (s *session) appeared(name string) {
	if s.cfg.Reserved(name) || s.cfg.Rules.Junk(name) { // a folder of such a name is found by a rescan
		return
	}
	info, err := s.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	s.listing.bare.doubt(name)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.book.admit(name, now) {
		s.listing.left++ // a rescan finds it when there is room
		return
	}
	s.book.hint(name, now)
}

// rescan finds out the truth about what is in the drop folder: it reads all of it, but for the parts that are surely as they were.
func (s *session) rescan(ctx context.Context, now time.Time, asked bool) error {
	if err := s.verify(now); err != nil {
		return err
	}
	l := &s.listing
	before, err := s.state()
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	s.checkEvents(before)
	s.mu.Lock()
	s.book.makeRoom(l.left > 0, now)
	known := l.bare.at == before || l.own > 0 && now.Sub(l.bare.whole) < wholeAtLeast
	same := !asked && l.events == l.own && l.left == 0 && !s.book.forgot && s.events != nil && s.local && l.bare.complete && known
	own := l.own
	l.events, l.own, s.book.forgot = 0, 0, false
	s.mu.Unlock()
	l.last, l.soon, l.refill = now, false, false
	l.bare.next(!asked && s.events != nil && s.local && !l.lost && l.strikes == 0)
	if same && l.bare.same(s.root) {
		if !l.bare.ours(before, now) {
			l.events, l.own = own, own
		}
		s.listedAt(now)
		return nil
	}
	l.bare.begin()
	r := round{session: s, tally: tally{}, now: now, left: -1}
	if err := r.read(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil { // the reading was cut off: a part of the drop folder is not the drop folder
		return nil
	}
	l.refill = l.cursor > 0 && r.left < 0 // there was a place for all behind the cursor: now for those before it
	l.cursor, l.left = max(r.left, 0), r.tally.count(Queued)
	l.refill = l.refill && l.left > 0
	l.lost = false
	l.bare.read(before, now, !r.unsure)
	s.mu.Lock()
	s.book.listed(r.tally)
	s.mu.Unlock()
	s.listedAt(now)
	s.cfg.OnChange()
	return nil
}

// state is the drop folder's own.
func (s *session) state() (state, error) {
	info, err := s.root.Stat(".")
	if err != nil {
		return state{}, err
	}
	return stateOf(info), nil
}

func (s *session) listedAt(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.listing.took = began, time.Since(began)
}

// checkEvents finds out that events do not arrive: the drop folder's own mtime moves with every entry that comes or goes, so a
// change without any event, twice in a row, means that nobody tells us.
func (s *session) checkEvents(now state) {
	l := &s.listing
	if !l.last.IsZero() && l.events == 0 && !now.mtime.Equal(l.changed) {
		l.strikes++
	} else {
		l.strikes = 0
	}
	l.changed = now.mtime
	if l.strikes >= 2 && s.events != nil {
		s.deaf("events do not arrive: rescans found changes that none told of")
	}
}

// round is one rescan under way.
type round struct {
	*session
	tally tally
	now   time.Time
	dir   *os.File
	at    int // position in the directory
	left  int // position of the first folder at or after the cursor that found no place; -1: none

	unsure bool // something could not be looked at: the next rescan tries again
}

func (r *round) read(ctx context.Context) error {
	dir, err := r.root.Open(".")
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	defer dir.Close()
	r.dir = dir
	for ctx.Err() == nil {
		entries, err := dir.ReadDir(chunk)
		for _, e := range entries {
			r.entry(e)
			r.at++
		}
		if err == io.EOF || (err == nil && len(entries) == 0) {
			return nil
		}
		if err != nil {
			return &Pause{Kind: Vanished, Err: err}
		}
	}
	return nil
}

func (r *round) entry(e os.DirEntry) {
	name := e.Name()
	if r.cfg.Reserved(name) || !e.IsDir() && r.cfg.Rules.Junk(name) {
		return
	}
	if !e.IsDir() {
		r.count(LooseFile, name, kind(e))
		return
	}
	r.mu.Lock()
	_, observed := r.book.subjects[name]
	r.mu.Unlock()
	if observed {
		return
	}
	if r.local && r.listing.bare.has(r.dir, name) {
		if known, near := r.near(name); known {
			r.without(name, near)
			return
		}
	}
	switch has, near, at, err := r.cfg.Rules.sidecarIn(r.dir, name); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // gone since
	case err != nil:
		r.unsure = true
		r.count(reasonOf(err), name, err)
	case !has:
		r.unsure = !r.listing.bare.note(name, at) || r.unsure
		r.without(name, nearWords(near, r.cfg.Rules.Sidecar))
	default:
		r.admit(name)
	}
}

// near reports whether it is known what is in the folder name, which has no sidecar and is as it was, and what was probably meant
// to be one. The first of them are looked into at each rescan all the same: a sidecar in a folder inside changes nothing out here.
func (r *round) near(name string) (known bool, near error) {
	if !r.tally.keeps(NoSidecar) {
		return true, nil
	}
	r.mu.Lock()
	before, ok := r.book.seen[name]
	r.mu.Unlock()
	if before.Detail != "" {
		near = errors.New(before.Detail)
	}
	return ok && r.tally.count(NoSidecar) >= lookedInto, near
}

// lookedInto is how many folders without a sidecar are looked into at each rescan though they are as they were.
const lookedInto = 100

// without counts a folder that has no sidecar, unless it is one of those that file servers make.
func (r *round) without(name string, near error) {
	if !r.cfg.Rules.Junk(name) {
		r.count(NoSidecar, name, near)
	}
}

func kind(e os.DirEntry) error {
	switch e.Type() {
	case 0:
		return nil
	case fs.ModeSymlink:
		return errors.New(LinkDetail)
	}
	return errors.New("neither file nor folder")
}

// admit puts a folder with a sidecar under observation. While not all fit, each rescan goes on where the one before found no place.
func (r *round) admit(name string) {
	r.mu.Lock()
	ok := r.at >= r.listing.cursor && r.book.admit(name, r.now)
	r.mu.Unlock()
	if ok {
		return
	}
	if r.at >= r.listing.cursor && r.left < 0 {
		r.left = r.at
	}
	r.count(Queued, name, nil)
}

func (r *round) count(reason Reason, name string, detail error) {
	since := r.now
	if r.tally.keeps(reason) {
		r.mu.Lock()
		if before, ok := r.book.seen[name]; ok {
			since = before.FirstSeen
		}
		r.mu.Unlock()
	}
	r.tally.add(reason, name, since, detail)
}

func (t tally) count(r Reason) int {
	if w := t[r]; w != nil {
		return w.Count
	}
	return 0
}
