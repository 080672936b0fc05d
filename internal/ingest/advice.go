package ingest

import (
	"fmt"
	"strings"
)

// Codes of causes for which no document is to blame, as the client of the
// business network gives them.
const (
	causeNotEnabled  = "service-not-enabled"
	causeOurRequest  = "request-not-accepted"
	causeOurFileType = "file-type-not-known"
)

// CauseStandIn is the code of a call that a stand-in of the service answered,
// though the environment is production.
const CauseStandIn = "stand-in"

// CauseProxyAuth is the code of a call for which a proxy, or a gateway on the
// way, wants a sign-in of its own.
const CauseProxyAuth = "http-407"

// isOnTheWay reports whether neither the service nor the object store answered,
// but something that is not theirs.
func isOnTheWay(code string) bool {
	return code == CauseStandIn || code == CauseProxyAuth || code == "proxy"
}

// AdviseOnTheWay returns the advice on a call that something on the way
// answered in place of the service; empty: it was not so.
func AdviseOnTheWay(code string) string {
	if !isOnTheWay(code) {
		return ""
	}
	return AdviceOn(code)
}

// NeedsPerson reports whether the first answer already shows that no waiting helps: the service refuses the credentials or a
// right, or the secret cannot be read. Other pauses may end by themselves, so that a person is told only after a while.
func (p Pause) NeedsPerson() bool {
	if p.Cause.Code == causeDoubtInARow {
		return true
	}
	if p.Target.Purpose == ToUpload && p.Target.Service != NetworkService && !isOnTheWay(p.Cause.Code) {
		return false // an upload address is refused, and the next registration brings another one
	}
	switch p.Cause.Code {
	case "credentials", "scope", "token", CauseStandIn, CauseProxyAuth, "http-401", "http-403", causeNotEnabled, causeOurRequest, causeOurFileType:
		return true
	}
	return p.refusesAddresses()
}

// refusesAddresses reports whether the PDF flow refuses what a registration says, which is nothing but the addresses of the drop.
func (p Pause) refusesAddresses() bool {
	return p.Target.Service == PDFService && p.Target.Purpose == ToRegister && (p.Cause.Code == "http-400" || p.Cause.Code == "http-422")
}

// refusedKeys names the keys of the configuration that a refusal of the addresses is about: one where the answer names one.
func (p Pause) refusedKeys() string {
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

// Meaning says in a few words what the answer of the other side means; empty: the text of the cause says it.
func (p Pause) Meaning() string {
	who := "the service"
	switch {
	case p.Target.Service == NetworkService:
		who = "the business network"
	case p.Target.Purpose == ToUpload:
		who = "the object store"
	}
	switch code := p.Cause.Code; {
	case code == causeNotEnabled:
		return who + " has not enabled a service for this account"
	case code == causeOurRequest:
		return who + " does not take what vaultd itself wrote into the call; no document is at fault"
	case code == causeOurFileType:
		return who + " does not know the type that network.file_types gives a file; no document is at fault"
	case code == "http-429":
		return who + " asks us to slow down"
	case code == "http-503":
		return who + " is overloaded, or is being maintained"
	case code == "http-502", code == "http-504":
		return "not " + who + " answers, but a gateway in front of it"
	case strings.HasPrefix(code, "http-5"):
		return who + " is faulty"
	case code == CauseProxyAuth:
		return "the proxy, or a gateway on the way, wants a sign-in"
	case p.NeedsPerson() && code != "scope" && strings.HasPrefix(code, "http-"):
		return who + " refuses the credentials, or a right"
	}
	return ""
}

// Advice says what a person should do about the pause.
func (p Pause) Advice() string {
	switch {
	case p.Cause.Code == causeNotEnabled, p.Cause.Code == causeOurRequest, p.Cause.Code == causeOurFileType:
		return AdviceOn(p.Cause.Code)
	case p.refusesAddresses():
		return fmt.Sprintf("correct %s of the drop %q, then reload; what waits is sent to the new address, and none is lost", p.refusedKeys(), p.Target.Drop)
	case isOnTheWay(p.Cause.Code):
		return AdviceOn(p.Cause.Code)
	case p.Target.Service == PDFService && p.Target.Purpose == ToRegister && p.Cause.Code == "http-403":
		return "renew pdf.auth.secret_file, which is read again by itself; if it is right, ask the provider about the right importDocuments.write"
	case p.Target.Service == NetworkService && p.NeedsPerson():
		return "renew network.auth.secret_file, which is read again by itself; if it is right, ask the provider about the rights of this account"
	case p.Target.Service == NetworkService && strings.HasPrefix(p.Cause.Code, "http-") && !isTheirs(p.Cause.Code):
		return "look at network.base_url and service.proxy; if they are right, ask the provider and name the request id"
	case p.Target.Purpose == ToDispose && p.Cause.Code == "unusually-many":
		return "look at this machine's date and at after_archive; if they are right: vaultd resume \"" + p.Target.String() + "\" --reason TEXT"
	case p.Cause.Code == causeDoubtInARow:
		return "ask the provider whether the store works again, then: vaultd resume \"" + p.Target.String() + "\" --reason TEXT. " +
			"Without that one document is tried after hours, and if it ends in doubt as well, a person must look for it"
	case p.Cause.Code == CauseMounted && !p.Target.Entry.IsZero():
		return "unmount it; it goes on by itself then. See vaultd why " + p.Target.Entry.String()
	case p.Cause.Code == CauseMounted:
		return "unmount it; all of them go on by themselves then"
	case p.Target.Purpose == ToReach, p.Target.Purpose == ToStore, p.Target.Purpose == ToDispose:
		return "it goes on by itself once this is mended"
	case p.Target.Purpose == ToUpload && strings.HasPrefix(p.Cause.Code, "http-") && !isTheirs(p.Cause.Code):
		return "it is tried again by itself, with new upload addresses. If it lasts, ask the provider and name the request id"
	case p.Target.Purpose == ToRegister && p.Cause.Code == "http-403":
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

// AdviceOn says what a person should do about a call that failed with this code, whatever it was about.
func AdviceOn(code string) string {
	switch code {
	case causeNotEnabled:
		return "ask the provider to enable the service for the account of network.auth; it goes on by itself then"
	case causeOurRequest:
		return "ask the provider, and name the request id and the error id; update vaultd where they say that the call is wrong. It is tried again by itself"
	case causeOurFileType:
		return "look at network.file_types, which may hold imageFile, attachmentFile and dataFile, then reload; if it is right, ask the provider and name the request id"
	case "cross-wired":
		return "ask the provider; once it is mended, restart vaultd"
	case "scope":
		return "put the scope's right name into service.auth.scopes, or ask the provider to grant it; then reload"
	case CauseStandIn:
		return "correct the base_url of that service; to try vaultd with vaultd emulate, write environment: test and use another state_dir"
	case CauseProxyAuth:
		return "write user and secret file of the proxy into service.proxy_auth, or renew that secret, which is read again by itself; without service.proxy a gateway on the way asks: let whoever runs it admit this machine"
	case "proxy":
		return "look at service.proxy, and ask whoever runs that proxy to let this machine through to the service and to the object store"
	case "token":
		return "look at auth.token_url of this account; if it is right, ask the provider for tokens of the type Bearer"
	case "policy", "upload-address-refused":
		return "look at service.allowed_hosts, service.redirect_hosts and base_url; if they are right, ask the provider where uploads go"
	case "upload-header-refused":
		return "ask the provider what uploads need this header for: vaultd sends none that could publish a document, replace it or change what the request is"
	case "credentials", "http-401", "http-403":
		return "renew the secret file, which is read again by itself; if it is right, ask the provider about rights on this vault"
	case "http-404", "http-502": // some services answer a wrong path so
		return "look at service.base_url, of whose path the capitals count, and at the vault's id (vaultd vaults). " + bindAnew
	case "unreadable":
		return "look at service.proxy and service.base_url: something else than the archive answers there. " + bindAnew
	case "certificate-expired":
		return "look at the date of this machine (timedatectl). If that is right, the certificate must be renewed by whoever runs that server: no setting of vaultd helps"
	case "certificate-early":
		return "set the clock of this machine (timedatectl); if it is right, tell whoever runs that server"
	case "certificate-unknown":
		return "if that is the authority of your provider or of your company's proxy, write the path of its PEM file into service.ca_file, then systemctl reload vaultd; otherwise somebody else answers: ask the network's administrator"
	case "certificate-foreign":
		return "another server answers: look at service.base_url and service.proxy, and at what the name servers say (getent hosts)"
	case "no-usable-ticket":
		return "look at the clock of this machine (timedatectl); if it is right, ask the provider"
	case "tls":
		return "look at the port in service.base_url and service.proxy, and at service.ca_file"
	case "dns":
		return "look at the spelling of service.base_url, and at this machine's name servers and network (getent hosts)"
	case "no-connection", "timeout", "connection":
		return "look at the network, the firewall and service.proxy; vaultd vaults tries it at once"
	}
	return "ask the provider, and name the request id"
}

// bindAnew is for an address that turns out to be wrong: a ledger is bound to it.
const bindAnew = "The ledger is bound to base_url: after a correction vaultd check says how to bind it anew"
