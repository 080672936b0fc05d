package ingest

import (
	"slices"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

// endedByPeople are the codes of causes whose first answer already shows that no
// waiting helps: the service refuses the credentials, a right or what vaultd
// itself wrote, or the secret cannot be read.
var endedByPeople = []string{
	"credentials", "scope", "token", apicall.CodeStandIn, apicall.CodeProxyAuth, "http-401", "http-403",
	"service-not-enabled", "request-not-accepted", "file-type-not-known", // of the business network
}

// CauseDoubtInARow is the code of a pause after so many uploads in doubt that an
// operator must look.
const CauseDoubtInARow = engine.CauseDoubtInARow

// NeedsPerson reports whether a person must end the pause. Other pauses may end
// by themselves, so that people hear of them only after a while.
func (p Pause) NeedsPerson() bool {
	switch {
	case p.Cause.Code == CauseDoubtInARow:
		return true
	case p.Target.Purpose == ToUpload && p.Target.Service != NetworkService && !apicall.IsOnTheWay(p.Cause.Code):
		return false // an upload address is refused, and the next registration brings another one
	}
	return slices.Contains(endedByPeople, p.Cause.Code) || p.RefusesAddresses()
}

// RefusesAddresses reports whether the PDF flow refuses what a registration
// says, which is nothing but the addresses of the drop.
func (p Pause) RefusesAddresses() bool {
	return p.Target.Service == PDFService && p.Target.Purpose == ToRegister && (p.Cause.Code == "http-400" || p.Cause.Code == "http-422")
}

func (c *Engine) closeBreaker(t Target) {
	if c.breakers.Close(t, c.cfg.Now().Wall) {
		c.cfg.Log.Info("route open again", "target", t.String())
	}
}

func (c *Engine) openBreaker(t Target, cause ledger.Cause, retryAfter time.Duration) {
	p := Pause{Target: t, Cause: cause}
	if c.breakers.Open(t, cause, p.NeedsPerson(), retryAfter, c.cfg.Now().Wall) {
		c.tellPause(p)
	}
}

// tellPause tells people of a pause that begins, or that needs a person only now.
func (c *Engine) tellPause(p Pause) {
	p.ConfigKey = c.configKeyOf(p.Target)
	if c.cfg.OnPause != nil {
		c.cfg.OnPause(p)
	}
}
