package vaultapi

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// TestRegister_I6_ATicketCountsFromBeforeItsPOST: an answer that takes its time takes it from the
// ticket's life.
func TestRegister_I6_ATicketCountsFromBeforeItsPOST(t *testing.T) {
	var took atomic.Int64
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		took.Store(int64(50 * time.Second))
		fmt.Fprintf(w, `[{"bumId":"b1","clientUUID":%q,"archiveFileURL":{"url":"http://%s/b1"}}]`, idA, r.Host)
	})
	c.now = func() archive.Instant {
		d := time.Duration(took.Load())
		return archive.Instant{Wall: before.Wall.Add(d), Boot: before.Boot + d, BootID: before.BootID}
	}
	answer := kit.Value(c.Register(t.Context(), "V", requests(idA)))(t)
	kit.Want(t, "the beginning of the ticket", answer.Tickets[idA].Sent, before)
}
