package ingest

import (
	"bytes"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Route is how the documents of one route reach their service: a row of the engine's table.
type Route struct {
	Client Client
	Sender Sender // of a route whose service notifies; Client and Asker are nil then
	// Recipients checks whom the documents of a Sender go to, before anything of them is sent; nil: nobody is asked.
	Recipients     RecipientChecker
	RequiresListed bool          // a document waits while its recipient is not listed; false: it is sent all the same, and people are told
	Asker          Asker         // nil: nobody can be asked what became of a document, which is delivered once the store took it
	Workers        int           // uploads at once; a vault in which none runs may always begin one
	BatchSize      int           // documents in one registration
	BatchWait      time.Duration // for a batch to fill
	// RepeatsUpload: the same bytes may go to the same address again where nobody answered the first upload and nobody can be asked.
	// The entry is flagged then.
	RepeatsUpload bool
}

// routeOf returns the row of an entry's route.
func (c *Engine) routeOf(e ledger.Entry) Route { return c.row(e.Route) }

func (c *Engine) row(r ledger.Route) Route { return c.cfg.Routes[r] }

// routeOfQueue returns the route whose service calls wait in a queue; of a drop's queue, the vault.
func routeOfQueue(queue string) ledger.Route {
	if r := ledger.Route(queue); slices.Contains(ledger.Routes(), r) {
		return r
	}
	return ledger.Vault
}

// wayOf returns how an entry goes.
func wayOf(e ledger.Entry) way { return wayOfRoute(e.Route) }

func wayOfRoute(r ledger.Route) way { return ways[r] }

// asker is who is asked about documents of the archive.
func (c *Engine) asker() Asker { return c.row(ledger.Vault).Asker }

// sumWorkers returns how many uploads of all routes may be under way at once.
func (c *Engine) sumWorkers() (n int) {
	for _, row := range c.cfg.Routes {
		n += row.Workers
	}
	return n
}

// registerWidth returns how many registrations of all routes may be under way at once.
func (c *Engine) registerWidth() int {
	width := vaultCalls
	for r, row := range c.cfg.Routes {
		if r != ledger.Vault {
			width += row.Workers
		}
	}
	return width
}

// hasOtherRequest reports whether an entry was packed for another request than its drop makes now, and may still be packed anew: a person has
// corrected the configuration.
func (c *Engine) hasOtherRequest(d Drop, e ledger.Entry, now archive.Instant) (bool, error) {
	if d.Request == nil {
		return false, nil
	}
	doc, known, err := c.cfg.Ledger.Document(e.Key)
	if err != nil || !known || bytes.Equal(doc.Metadata, d.Request) {
		return false, err
	}
	_, err = ledger.Transition(e, ledger.Unsealed{}, now)
	return err == nil, nil // else bytes of it may have been sent: it goes on as it is
}

// HostsWithoutMD5 returns the hosts that took packages without Content-MD5
// alone since the start, each once and in order.
func (c *Engine) HostsWithoutMD5() (hosts []string) {
	for _, row := range c.cfg.Routes {
		if row.Client != nil {
			hosts = append(hosts, row.Client.HostsWithoutMD5()...)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
