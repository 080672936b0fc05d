package present

import (
	"cmp"
	"fmt"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/ingest"
)

// refusedKeys names the keys of the configuration that a refusal of the
// addresses is about: one where the answer names one.
func refusedKeys(p ingest.Pause) string {
	receiving, notify := p.ConfigKey+".receiving", p.ConfigKey+".notify"
	saysReceiving, saysNotify := strings.Contains(p.Cause.Text, "receivingEmailAddress"), strings.Contains(p.Cause.Text, "notificationEmailAddress")
	switch {
	case saysReceiving && !saysNotify:
		return receiving
	case saysNotify && !saysReceiving:
		return notify
	}
	return receiving + " and " + notify
}

// meaningOf says in a few words what the answer of the other side means; empty:
// the text of the cause says it.
func meaningOf(p ingest.Pause) string {
	who := "the service"
	switch {
	case p.Target.Service == ingest.NetworkService:
		who = "the business network"
	case p.Target.Purpose == ingest.ToUpload:
		who = "the object store"
	}
	switch code := p.Cause.Code; {
	case code == "service-not-enabled":
		return who + " has not enabled a service for this account"
	case code == "request-not-accepted":
		return who + " does not take what vaultd itself wrote into the call; no document is at fault"
	case code == "file-type-not-known":
		return who + " does not know the type that network.file_types gives a file; no document is at fault"
	case code == "http-429":
		return who + " asks us to slow down"
	case code == "http-503":
		return who + " is overloaded, or is being maintained"
	case code == "http-502", code == "http-504":
		return "not " + who + " answers, but a gateway in front of it"
	case strings.HasPrefix(code, "http-5"):
		return who + " is faulty"
	case code == apicall.CodeProxyAuth:
		return "the proxy, or a gateway on the way, wants a sign-in"
	case p.NeedsPerson() && code != "scope" && strings.HasPrefix(code, "http-"):
		return who + " refuses the credentials, or a right"
	}
	return ""
}

// AdviseOnPause says what to do about a pause.
func AdviseOnPause(p ingest.Pause) string {
	switch {
	case p.Cause.Code == "service-not-enabled", p.Cause.Code == "request-not-accepted", p.Cause.Code == "file-type-not-known", apicall.IsOnTheWay(p.Cause.Code):
		return AdviceOn(p.Cause.Code)
	case p.RefusesAddresses():
		return fmt.Sprintf("correct %s of the drop %q, then reload; what waits is sent to the new address, and none is lost", refusedKeys(p), p.Target.Drop)
	case p.Target.Service == ingest.PDFService && p.Target.Purpose == ingest.ToRegister && p.Cause.Code == "http-403":
		return "renew pdf.auth.secret_file, which is read again by itself; if it is right, ask the provider about the right importDocuments.write"
	case p.Target.Service == ingest.NetworkService && p.NeedsPerson():
		return "renew network.auth.secret_file, which is read again by itself; if it is right, ask the provider about the rights of this account"
	case p.Target.Service == ingest.NetworkService && strings.HasPrefix(p.Cause.Code, "http-") && !isTheirs(p.Cause.Code):
		return "look at network.base_url and service.proxy; if they are right, ask the provider and name the request id"
	case p.Target.Purpose == ingest.ToDispose && p.Cause.Code == "unusually-many":
		return "look at this machine's date and at after_archive; if they are right: vaultd resume \"" + p.Target.String() + "\" --reason TEXT"
	case p.Cause.Code == ingest.CauseDoubtInARow:
		return "ask the provider whether the store works again, then: vaultd resume \"" + p.Target.String() + "\" --reason TEXT. " +
			"Without that one document is tried after hours, and if it ends in doubt as well, a person must look for it"
	case p.Cause.Code == ingest.CauseMounted && !p.Target.Entry.IsZero():
		return "unmount it; it goes on by itself then. See vaultd why " + p.Target.Entry.String()
	case p.Cause.Code == ingest.CauseMounted:
		return "unmount it; all of them go on by themselves then"
	case p.Target.Purpose == ingest.ToReach, p.Target.Purpose == ingest.ToStore, p.Target.Purpose == ingest.ToDispose:
		return "it goes on by itself once this is mended"
	case p.Target.Purpose == ingest.ToUpload && strings.HasPrefix(p.Cause.Code, "http-") && !isTheirs(p.Cause.Code):
		return "it is tried again by itself, with new upload addresses. If it lasts, ask the provider and name the request id"
	case p.Target.Purpose == ingest.ToRegister && p.Cause.Code == "http-403":
		return "renew the secret file, which is read again by itself; compare the vault's id with vaultd vaults; if both are right, ask the provider about rights on this vault"
	}
	advice := AdviceOn(p.Cause.Code)
	switch {
	case isTheirs(p.Cause.Code):
		return "nothing to do: it is tried again by itself. If it lasts for hours, " + advice
	case mayPass(p.Cause.Code):
		return "it is tried again by itself. If it lasts, " + advice
	}
	return advice
}

// isTheirs reports whether the other side alone can mend what failed with this code.
func isTheirs(code string) bool {
	return code == "http-429" || strings.HasPrefix(code, "http-5") && code != "http-502"
}

// mayPass reports whether what failed with this code often ends by itself.
func mayPass(code string) bool {
	switch code {
	case "dns", "no-connection", "timeout", "connection", "unforeseen", "http-502":
		return true
	}
	return false
}

// Advice that several codes share.
const (
	renewSecret    = "renew the secret file, which is read again by itself; if it is right, ask the provider about rights on this vault"
	lookAtHosts    = "look at service.allowed_hosts, service.redirect_hosts and base_url; if they are right, ask the provider where uploads go"
	lookAtNetwork  = "look at the network, the firewall and service.proxy; vaultd vaults tries it at once"
	lookAtBaseURL  = "look at service.base_url, of whose path the capitals count, and at the vault's id (vaultd vaults). " + bindAnew
	bindAnew       = "The ledger is bound to base_url: after a correction vaultd check says how to bind it anew"
	adviceOnOthers = "ask the provider, and name the request id"
)

// adviceByCode is what [AdviceOn] says.
var adviceByCode = map[string]string{
	"service-not-enabled":    "ask the provider to enable the service for the account of network.auth; it goes on by itself then",
	"request-not-accepted":   "ask the provider, and name the request id and the error id; update vaultd where they say that the call is wrong. It is tried again by itself",
	"file-type-not-known":    "look at network.file_types, which may hold imageFile, attachmentFile and dataFile, then reload; if it is right, ask the provider and name the request id",
	"cross-wired":            "ask the provider; once it is mended, restart vaultd",
	"scope":                  "put the scope's right name into service.auth.scopes, or ask the provider to grant it; then reload",
	apicall.CodeStandIn:      "correct the base_url of that service; to try vaultd with vaultd emulate, write environment: test and use another state_dir",
	apicall.CodeProxyAuth:    "write user and secret file of the proxy into service.proxy_auth, or renew that secret, which is read again by itself; without service.proxy a gateway on the way asks: let whoever runs it admit this machine",
	apicall.CodeProxy:        "look at service.proxy, and ask whoever runs that proxy to let this machine through to the service and to the object store",
	"token":                  "look at auth.token_url of this account; if it is right, ask the provider for tokens of the type Bearer",
	"policy":                 lookAtHosts,
	"upload-address-refused": lookAtHosts,
	"upload-header-refused":  "ask the provider what uploads need this header for: vaultd sends none that could publish a document, replace it or change what the request is",
	"credentials":            renewSecret,
	"http-401":               renewSecret,
	"http-403":               renewSecret,
	"http-404":               lookAtBaseURL, // some services answer a wrong path so
	"http-502":               lookAtBaseURL, // some services answer a wrong path so
	"unreadable":             "look at service.proxy and service.base_url: something else than the archive answers there. " + bindAnew,
	"certificate-expired":    "look at the date of this machine (timedatectl). If that is right, the certificate must be renewed by whoever runs that server: no setting of vaultd helps",
	"certificate-early":      "set the clock of this machine (timedatectl); if it is right, tell whoever runs that server",
	"certificate-unknown":    "if that is the authority of your provider or of your company's proxy, write the path of its PEM file into service.ca_file, then systemctl reload vaultd; otherwise somebody else answers: ask the network's administrator",
	"certificate-foreign":    "another server answers: look at service.base_url and service.proxy, and at what the name servers say (getent hosts)",
	"no-usable-ticket":       "look at the clock of this machine (timedatectl); if it is right, ask the provider",
	"tls":                    "look at the port in service.base_url and service.proxy, and at service.ca_file",
	"dns":                    "look at the spelling of service.base_url, and at this machine's name servers and network (getent hosts)",
	"no-connection":          lookAtNetwork,
	"timeout":                lookAtNetwork,
	"connection":             lookAtNetwork,
}

// AdviceOn says what a person should do about a call that failed with this
// code, whatever it was about.
func AdviceOn(code string) string {
	return cmp.Or(adviceByCode[code], adviceOnOthers)
}
