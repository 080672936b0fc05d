package arrivals

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// errRefused ends the work on an arrival whose download would be lost: it leads
// to a host that the configuration does not allow. Nothing is committed.
var errRefused = errors.New("downloads from this host lead to a host that is not allowed")

// isRefused reports whether a download of the arrival led to a host that the
// configuration still does not allow. The ledger knows it, so a restart costs
// no further download.
func (x *extracts) isRefused(a arrival.Arrival) bool {
	return a.Refused.From != "" && a.Refused.Hosts == x.cfg.Hosts
}

// describeRefusal says why downloads are not made.
func describeRefusal(a arrival.Arrival) string {
	if a.Cause.Code == "policy" {
		return a.Cause.Text
	}
	return "downloads from " + a.Refused.From + " lead to a host that is not allowed"
}

// readRefusals notes the last of the refusals that keep downloads back.
func (x *extracts) readRefusals() error {
	why := ""
	err := x.eachRefused(func(a arrival.Arrival) { why = describeRefusal(a) })
	x.noteRefusal(why)
	return err
}

// eachRefused calls fn with every extract of which a download was refused, and
// would be again.
func (x *extracts) eachRefused(fn func(arrival.Arrival)) error {
	_, _, err := x.ledger.DueArrivals(arrival.Extract, arrival.WasRefused, x.now().Wall.AddDate(100, 0, 0), 1, nil, func(a arrival.Arrival) bool {
		if x.isRefused(a) {
			fn(a)
		}
		return true
	})
	return err
}

// noteRefusal notes why some downloads are not made; empty: all may be made.
func (x *extracts) noteRefusal(why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused = why
}

// enterWay lets one download begin at a time: where it leads to a host that is
// not allowed, no other one is lost in the same way. The next one begins after
// begun is called. Its error is errRefused where a download from the host was
// refused, or the program ends.
func (x *extracts) enterWay(ctx context.Context, from string) (begun func(), err error) {
	select {
	case x.way <- struct{}{}:
	case <-ctx.Done():
		return nil, errRefused
	}
	begun = sync.OnceFunc(func() { <-x.way })
	wasRefused := false
	err = x.eachRefused(func(a arrival.Arrival) { wasRefused = wasRefused || a.Refused.From == from })
	if err == nil && wasRefused {
		err = errRefused
	}
	if err != nil {
		begun()
	}
	return begun, err
}

// postponeRefused commits that a download led to a host that is not allowed. A
// crash before the commit costs one download more: the next start tries again.
func (x *extracts) postponeRefused(ctx context.Context, w *work, from string, fault *apicall.Error) error {
	w.Log.Warn("extracts are not downloaded from a host until the configuration changes", "host", from, "err", fault.Error())
	x.noteRefusal(fault.Error())
	return w.commit(ctx, arrival.Postponed{Until: w.now().Wall.Add(arrival.DelayAfter(int(w.a.Attempt))),
		Cause: ledger.Cause{Code: fault.Code, Text: fault.Error()}, Refused: arrival.Refused{From: from, Hosts: x.cfg.Hosts}})
}

// hostOfLink returns the host of a download's address. A link without one leads
// to the service itself.
func hostOfLink(link archive.DownloadURL) string {
	u, err := url.Parse(string(link))
	if err != nil || u.Host == "" {
		return "the service"
	}
	return strings.ToLower(u.Host)
}

// firstByte calls begun when the first byte is written.
type firstByte struct {
	io.Writer
	begun func()
}

func (f firstByte) Write(p []byte) (int, error) {
	f.begun()
	return f.Writer.Write(p)
}
