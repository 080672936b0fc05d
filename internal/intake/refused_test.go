package intake

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// twoStores is a service whose links lead to two hosts. Downloads from one of
// them are redirected to a host that is not allowed.
type twoStores struct {
	*service
	lost *atomic.Int32 // downloads from it
}

func (s twoStores) Files(ctx context.Context, id archive.ExtractID) ([]archive.ExtractFile, error) {
	files, err := s.service.Files(ctx, id)
	for i := range files {
		files[i].URL = "https://good.example/x"
		if strings.HasPrefix(string(id), "bad") {
			files[i].URL = "https://BAD.example/x"
		}
	}
	return files, err
}

func (s twoStores) Download(ctx context.Context, f archive.ExtractFile, w io.Writer) (int64, error) {
	if f.URL == "https://BAD.example/x" {
		s.lost.Add(1)
		why := &apicall.PolicyError{Host: "eu.example", IsUnlisted: true}
		return 0, &apicall.Error{Outcome: apicall.NotProcessed, Sent: true, Code: "policy", Text: "host eu.example refused", Err: why}
	}
	return s.service.Download(ctx, f, w)
}

// What leads to a refused host waits, one download being lost. What leads
// elsewhere comes in and is acknowledged, before and after a restart.
func TestIntake_I23_I25_ARefusedHostDelaysNoOther(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := twoStores{h.svc, new(atomic.Int32)}
		h.real, h.hosts = s, "one"
		for _, id := range []archive.ExtractID{"bad1", "good1", "bad2", "good2"} {
			h.svc.add(id, "a", "b")
		}
		kit.Must(t, h.live(3*time.Hour))
		h.svc.add("bad3", "a")
		h.svc.add("good3", "a")
		kit.Must(t, h.live(3*time.Hour))
		kit.Want(t, "downloads lost", s.lost.Load(), 1)
		for _, id := range []archive.ExtractID{"good1", "good2", "good3"} {
			h.want(id, arrival.Acknowledged)
		}
		h.hosts = "two" // another configuration: one try tells that it does not help
		kit.Must(t, h.live(3*time.Hour))
		kit.Want(t, "downloads lost, once the hosts changed", s.lost.Load(), 2)
	})
}
