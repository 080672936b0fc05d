package emulator

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// operation is one row of the table of operations: what it is called, where it is found, to which service it belongs, and what
// it does.
type operation struct {
	op       string   // its name in faults, in the journal and in CountCalls
	of       *service // whose accounts, scopes and error answers it has; nil: it needs no credentials and has the vault's error answers
	host     host
	method   string   // empty: every method
	path     string   // of the API: a pattern of http.ServeMux. Of the store: a pattern of path.Match for the name of the object
	wants    []string // headers of the first call that a redirect to here has to repeat; without one the answer is 403
	isUpload bool     // its body is an object for the store; the faults of uploads strike it
	serve    handler

	// observe sees each call that reaches the service, before its fault strikes; nil: nothing does. False: the call is not answered.
	observe func(*Server, *call) bool
}

// host is one of the two hosts of the service.
type host int

const (
	apiHost   host = iota // takes credentials
	storeHost             // takes pre-signed addresses and refuses credentials
)

// service is one interface of the provider: what its operations have in common.
type service struct {
	accounts     []Account // who may use it; the zero Account is the main one
	scopes       []string  // that only its accounts are granted; empty: all that no other service names
	requireScope string    // a bearer token without this scope gets 403; empty: any token will do
	startsSlowly bool      // many calls at once in the first second are a violation
	isBasicOnly  bool      // it takes HTTP Basic alone, also where the main account has none; a call without Authorization is a violation
	mostAtOnce   int       // more calls at once are a violation; 0: any number
	errorForm    func(Readings) string
}

// operations returns the table. One more interface adds its rows here; its handlers and its service stand in a file of its own.
// At the store the first row that fits takes a call.
func (c *Config) operations() []operation {
	const vault, doc = "/v1/vaults/{vault}", "/v1/vaults/{vault}/documents"
	vaults, pdf := c.vaultService(), c.pdfService()
	const extracts, extract = "/v1/dataExtracts", "/v1/dataExtracts/{extract}"
	books, booksWrite, bookFiles := c.extractService(c.Extracts.ReadScope), c.extractService(c.Extracts.WriteScope), c.extractFileService()
	return slices.Concat([]operation{
		{op: "token", method: "POST", path: "/v1/tokens", serve: (*Server).grantToken},
		{op: "vaults", of: vaults, method: "GET", path: "/v1/vaults", serve: (*Server).listVaults},
		{op: "register", of: vaults, method: "POST", path: doc, serve: requireVault((*Server).register)},
		{op: "status-list", of: vaults, method: "GET", path: doc + "/status", serve: requireVault((*Server).statusList)},
		{op: "status", of: vaults, method: "GET", path: doc + "/{bumId}/status", serve: requireVault((*Server).status)},
		{op: "download", of: vaults, method: "GET", path: doc + "/{bumId}", serve: requireVault((*Server).download)},
		{op: "index", of: vaults, method: "GET", path: vault + "/index", serve: requireVault((*Server).index)},
		{op: "pdf-register", of: pdf, method: "POST", path: c.PDF.Path, serve: (*Server).registerSlot},
		{op: "extract-list", of: books, method: "GET", path: extracts, serve: (*Server).listExtracts},
		{op: "extract-definition", of: books, method: "GET", path: extracts + "/specification/tableDefinition", serve: (*Server).tellDefinition},
		{op: "extract-files", of: books, method: "GET", path: extract, serve: (*Server).listExtractFiles},
		{op: "extract-download", of: books, method: "GET", path: extract + "/files/{number}", serve: (*Server).downloadExtractFile},
		{op: "extract-acknowledge", of: booksWrite, method: "POST", path: extract + "/acknowledge", serve: (*Server).acknowledgeExtract},
		{op: "extract-acknowledge", of: booksWrite, method: "POST", path: "/v1/dataExtract/{extract}/acknowledge", serve: (*Server).acknowledgeExtract},
		{op: "extract-fetch", of: bookFiles, method: "GET", path: guardedFiles + "/{extract}/{number}", serve: (*Server).fetchGuardedFile, wants: []string{"Authorization", "Date"}},
		unknownOperation,

		{op: "extract-fetch", of: bookFiles, host: storeHost, method: "GET", path: "*.extract", serve: (*Server).fetchExtractFile},
		{op: "download", of: vaults, host: storeHost, method: "GET", path: "*", serve: (*Server).fetchObject},
		{op: "pdf-upload", of: pdf, host: storeHost, path: "*.pdf", isUpload: true, serve: (*Server).storePDF},
		{op: "upload", of: vaults, host: storeHost, path: "*", isUpload: true, serve: (*Server).storeObject},
	}, c.networkOperations())
}

// unknownOperation stands for every path that does not exist. This service answers it with 502.
var unknownOperation = operation{op: "unknown", path: "/", serve: (*Server).refuseUnknownPath}

func (s *Server) refuseUnknownPath(c *call) reply {
	return c.refusal(http.StatusBadGateway, "NoSuchPath", "the URI or endpoint does not exist")
}

// vaultService is the archive interface.
func (c *Config) vaultService() *service {
	v := &service{accounts: []Account{{}}, scopes: c.Scopes, requireScope: c.RequireScope,
		errorForm: func(r Readings) string { return r.ErrorBody }}
	for _, vault := range c.Vaults {
		v.accounts = append(v.accounts, vault.Account)
	}
	return v
}

// operationNames returns the names by which faults know the operations. They are the same in every configuration.
func operationNames() (names []string) {
	for _, o := range new(Config).operations() {
		if !slices.Contains(names, o.op) {
			names = append(names, o.op)
		}
	}
	return names
}

// needsCredentials reports whether calls must carry the credentials of an account.
func (o operation) needsCredentials() bool { return o.of != nil && o.host == apiHost }

// admits reports whether the service may be used with an account. The main account has no name.
func (v *service) admits(account string) bool {
	return slices.ContainsFunc(v.accounts, func(a Account) bool { return a.Name == account })
}

// registerRoutes makes the operations reachable. Each gets the same authentication, faults and journal.
func (s *Server) registerRoutes() {
	for _, o := range s.operations {
		if o.host == apiHost {
			s.mux.HandleFunc(strings.TrimSpace(o.method+" "+o.path), s.serveCall(o))
		}
	}
}

// movedPrefix marks a call that has followed a redirect of Readings.RedirectTo.
const movedPrefix = "/moved"

// API serves the service's own host.
func (s *Server) API() http.Handler {
	unknown := s.serveCall(unknownOperation)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r2 := r
		if p, ok := strings.CutPrefix(r.URL.Path, movedPrefix); ok {
			r2 = r.Clone(r.Context())
			r2.URL.Path, r2.URL.RawPath = p, strings.TrimPrefix(r.URL.RawPath, movedPrefix)
		}
		// The mux would redirect a path that is not clean, and answer HEAD where it has GET. This service has neither.
		if r2.URL.Path != path.Clean(r2.URL.Path) || r2.Method == http.MethodHead {
			unknown(w, r2)
			return
		}
		s.mux.ServeHTTP(w, r2)
	})
}

// Store serves the object store's host. It takes pre-signed PUT and GET only.
func (s *Server) Store() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, o := range s.operations {
			if o.takesObject(r) {
				s.serveCall(o)(w, r)
				return
			}
		}
	})
}

// takesObject reports whether a call to the store belongs to the operation.
func (o operation) takesObject(r *http.Request) bool {
	fits, err := path.Match(o.path, objectName(r.URL))
	return o.host == storeHost && (o.method == "" || o.method == r.Method) && fits && err == nil
}

// objectName returns the name of the object that a call to the store is about, without its folder.
func objectName(u *url.URL) string {
	return strings.TrimPrefix(path.Base(cmp.Or(u.Query().Get("key"), u.Path)), "/")
}

// ServeHTTP serves API and Store on one host. A request that is pre-signed, or lies under the path of StoreURL, goes to the
// store.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.isStore(r) {
		s.Store().ServeHTTP(w, r)
		return
	}
	s.API().ServeHTTP(w, r)
}

func (s *Server) isStore(r *http.Request) bool {
	if _, pattern := s.mux.Handler(r); pattern != unknownOperation.path || strings.HasPrefix(r.URL.Path, "/v1/") {
		return false
	}
	u, err := url.Parse(s.storeURL(r))
	ours := err == nil && u.Host == r.Host && strings.HasPrefix(r.URL.Path, u.Path+"/")
	return ours || isPresigned(r) // after a redirect it may arrive at another host
}

func (s *Server) storeURL(r *http.Request) string {
	if s.cfg.StoreURL != nil {
		return strings.TrimSuffix(s.cfg.StoreURL(), "/")
	}
	return baseURL(r) + "/packages"
}

func baseURL(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
