package mutants

// remote are mistakes in what is said to the service and the store, and in what is made of their answers.
var remote = []mutant{
	{
		name: "NoIntentBeforeRegistering", promise: "I11", file: "internal/ingest/runner.go",
		old:   "\tr.c.cfg.Ledger.Submit(intents, run)\n",
		new:   "\tgo r.do(work, p.es)\n\tr.c.cfg.Ledger.Submit(intents, run)\n",
		tests: []string{conductor, worlds},
	},
	{
		name: "CommitErrorOfAnIntentIgnored", promise: "I11", file: "internal/ingest/runner.go",
		old: "if res.Err == nil && acting[res.Key] {\n\t\t\t\tp.acts = append(p.acts, res.Entry)", new: "if acting[res.Key] {\n\t\t\t\tp.acts = append(p.acts, p.es[0])",
		tests: []string{conductor, worlds},
	},
	{
		name: "MatchedByPosition", promise: "I8", file: "internal/vaultapi/register.go",
		old:   "\tfor _, raw := range list {\n\t\tm.record(raw)\n\t}\n",
		new:   "\tfor i, raw := range list {\n\t\tif i < len(frozen) {\n\t\t\traw = bytes.Replace(raw, raw[bytes.Index(raw, []byte(`\"clientUUID\":\"`))+14:][:36], []byte(frozen[i].ID.String()), 1)\n\t\t}\n\t\tm.record(raw)\n\t}\n",
		tests: []string{speech, readings},
	},
	{
		name: "SharedNumberBelieved", promise: "I8", file: "internal/vaultapi/register.go",
		old: "\t\tm.out.Crossed[id], m.out.Crossed[other] = crossNumber, crossNumber\n", new: "", tests: []string{speech, readings},
	},
	{
		name: "NumberOfAnotherEntryBelieved", promise: "I8", file: "internal/ingest/conductor.go",
		old: `if e.State == ledger.Registering && taken.What == "bumId" {`, new: "if false {", tests: []string{conductor, readings, worlds},
	},
	{
		name: "StatusOfAnotherDocumentBelieved", promise: "I8", file: "internal/ingest/ask.go",
		old: "if !rc.ID.IsZero() && !ours(e, rc.ID) {", new: "if false {", tests: []string{conductor, readings},
	},
	{
		name: "TicketCountsFromTheAnswer", promise: "I6", file: "internal/vaultapi/register.go",
		old: "base: archive.Ticket{Sent: before, Date: ans.Date()}", new: "base: archive.Ticket{Sent: func() archive.Instant { _ = before; return c.now() }(), Date: ans.Date()}",
		tests: []string{speech},
	},
	{
		name: "ExpiryByOurClock", promise: "I6", file: "internal/window/window.go",
		old: "return min(window, t.SignedAt.Add(t.Validity).Sub(t.Date)-time.Second)", new: "return min(window, t.Validity)",
		tests: []string{"vaultd/internal/window"},
	},
	{
		name: "TicketOfAnotherBootStillGood", promise: "I6", file: "internal/archive/ticket.go",
		old: `return i.Boot - earlier.Boot, i.BootID == earlier.BootID && i.BootID != ""`, new: "return i.Boot - earlier.Boot, true",
		tests: []string{"vaultd/internal/archive", "vaultd/internal/window", worlds},
	},
	{
		name: "WallClockDecides", promise: "I6", file: "internal/archive/ticket.go",
		old: `return i.Boot - earlier.Boot, i.BootID == earlier.BootID && i.BootID != ""`, new: "return i.Wall.Sub(earlier.Wall), true",
		tests: []string{"vaultd/internal/archive", "vaultd/internal/window", worlds},
	},
	{
		name: "StartsWhateverIsLeft", promise: "I6", file: "internal/window/planner.go",
		old: "return left > 0 && p.predict(bytes, booked, life)+margin <= left", new: "return left > 0 && margin >= 0", tests: []string{"vaultd/internal/window"},
	},
	{
		name: "RefusedBatchRejectsAll", promise: "I23", file: "internal/ingest/register.go",
		old: "if n := len(asked); n > 1 {", new: "if n := len(asked); n < 0 {", tests: []string{conductor, readings},
	},
	{
		name: "ForbiddenRejects", promise: "I24", file: "internal/ingest/register.go",
		old:   "\tswitch err.Outcome {\n\tcase Refused:\n\t\treturn c.refused(vault, asked, err)\n\tcase NotSent, TurnedAway:",
		new:   "\tswitch err.Outcome {\n\tcase Refused, TurnedAway:\n\t\treturn c.refused(vault, asked, err)\n\tcase NotSent:",
		tests: []string{conductor, readings, worlds},
	},
	{
		name: "RestingStoreWakesNobody", promise: "I24", file: "internal/ingest/register.go",
		old: "return 0, again // a ticket would only run out", new: "_ = again\n\t\treturn 0, time.Time{}",
		tests: []string{conductor},
	},
	{
		name: "RefusedForEver", promise: "I25", file: "internal/ingest/upload.go",
		old: "ledger.UploadRefused{NotBefore: c.apart(e, again)", new: "ledger.UploadRefused{NotBefore: again", tests: []string{conductor},
	},
	{
		name: "DamagedPackageSentAgain", promise: "I4", file: "internal/ingest/upload.go",
		old: "if err == nil && !intact {", new: "if err == nil && !intact && false {", tests: []string{conductor},
	},
	{
		name: "HeldPackagesFillTheirVault", promise: "I23", file: "internal/ingest/backlog.go",
		old: "|| e.State > ledger.Sending || e.Hold || e.Suspect {", new: "|| e.State > ledger.Sending {", tests: []string{conductor},
	},
	{
		name: "BlindToWhatBeginsBeside", promise: "I6", file: "internal/ingest/gate.go",
		old: "if g.turn != nil {", new: "if g.turn != nil && false {", tests: []string{conductor},
	},
	{
		name: "DoneTwiceByAnOldLook", promise: "I11", file: "internal/ingest/gate.go",
		old: "return g.busy[k] || g.ended[k]", new: "return g.busy[k]", tests: []string{conductor},
	},
	{
		name: "ThreeRefusalsGoOn", promise: "I24", file: "internal/ingest/register.go",
		old: "return len(r.by[v]) >= tolerated\n}\n\nfunc (r *refusals) tooMany", new: "return false\n}\n\nfunc (r *refusals) tooMany",
		tests: []string{conductor, readings},
	},
	{
		name: "ETagIgnored", promise: "I4", file: "internal/ingest/upload.go",
		old: "return len(etag) != 32 || !c.md5ETags.Load()", new: "return true", tests: []string{conductor, readings},
	},
	{
		name: "NoContentMD5", promise: "I4", file: "internal/vaultapi/upload.go",
		old: "\th.Set(\"Content-MD5\", base64.StdEncoding.EncodeToString(p.MD5[:]))\n", new: "\t_ = base64.StdEncoding\n",
		tests: []string{speech, readings},
	},
	{
		name: "ChunkedUpload", promise: "I4", file: "internal/apicall/call.go",
		old: "req.Body, req.ContentLength = body, c.size\n", new: "req.Body, req.ContentLength = body, -1\n", tests: []string{calls, speech},
	},
	{
		name: "LengthOfAnotherBody", promise: "I4", file: "internal/ingest/upload.go",
		old: "identical := packed.Sealed.Package.SHA256 == e.Package.SHA256", new: "identical := packed.Sealed.Package.Size > 0",
		tests: []string{conductor, worlds},
	},
	{
		name: "CredentialsGoToSignedURLs", promise: "I20", file: "internal/apicall/policy.go",
		old: "\t\treturn !signed, p.shape(u)\n", new: "\t\treturn true, p.shape(u)\n",
		tests: []string{calls},
	},
	{
		name: "RedirectToPlainHTTP", promise: "I20", file: "internal/apicall/policy.go",
		old: "\tif u.Scheme == \"https\" {\n\t\treturn nil\n\t}\n", new: "\treturn nil\n", tests: []string{calls},
	},
	{
		name: "PostBecomesGet", promise: "I12", file: "internal/apicall/redirect.go",
		old: "case !kept && c.method != http.MethodGet:", new: "case !kept && c.method == \"\":", tests: []string{calls},
	},
	{
		name: "PrivateAddressesReached", promise: "I20", file: "internal/apicall/transport.go",
		old: "if !viaProxy && !p.configured(host, portName) {", new: "if false && !p.configured(host, portName) {\n\t\t\t_ = viaProxy", tests: []string{calls},
	},
	{
		name: "TLSUnverified", promise: "I20", file: "internal/apicall/transport.go",
		old: "MinVersion: tls.VersionTLS12, RootCAs: roots", new: "MinVersion: tls.VersionTLS12, RootCAs: roots, InsecureSkipVerify: true", tests: []string{calls},
	},
	{
		name: "OldTLS", promise: "I20", file: "internal/apicall/transport.go",
		old: "MinVersion: tls.VersionTLS12, RootCAs: roots", new: "MinVersion: tls.VersionTLS10, RootCAs: roots", tests: []string{calls},
	},
	{
		name: "AnswerSetsAnyHeader", promise: "I20", file: "internal/vaultapi/upload.go",
		old: "if err := permitted(extra.Name, extra.Value); err != nil {", new: "if err := permitted(extra.Name, extra.Value); err != nil && extra.Name == \"\" {",
		tests: []string{speech},
	},
	{
		name: "SignatureInErrors", promise: "I7", file: "internal/archive/ticket.go",
		old: `func (PresignedURL) String() string { return "[presigned]" }`, new: "func (u PresignedURL) String() string { return string(u) }",
		tests: []string{"vaultd/internal/archive", calls},
	},
	{
		name: "SignatureInPrints", promise: "I7", file: "internal/archive/ticket.go",
		old: `func (PresignedURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[presigned]") }`, new: "func (u PresignedURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, string(u)) }",
		tests: []string{"vaultd/internal/archive", calls},
	},
	{
		name: "NeverAskedAgainAboutOldRegistrations", promise: "I13", file: "internal/ledger/entry.go",
		old: "if (r.Fate == Maybe || r.Fate == Stored) && e.latest(i) {", new: "if (r.Fate == Maybe || r.Fate == Stored) && e.latest(i) && i == len(e.Registrations)-1 {",
		tests: []string{pure, worlds},
	},
	{
		name: "SuspendVoidsNothing", promise: "I6", file: "internal/window/window.go",
		old: "if !ok || gone < 0 || now.SleptSince(t.Sent) {", new: "if !ok || gone < 0 {", tests: []string{"vaultd/internal/window", conductor},
	},
	{
		name: "TakenTwice", promise: "I2", file: "internal/ingest/gate.go",
		old: "\t\tif g.busy[e.Key] {\n", new: "\t\tif false && g.busy[e.Key] {\n", tests: []string{conductor},
	},
	{
		name: "PauseNotHeardInMidRound", promise: "I24", file: "internal/ingest/runner.go",
		old: "if rests { // since this was found", new: "if false && rests {", tests: []string{conductor},
	},
	{
		name: "PauseNotHeardWhileWaiting", promise: "I24", file: "internal/ingest/work.go",
		old: "return rests && !p.probe", new: "return false && rests", tests: []string{conductor},
	},
	{
		name: "AnswerToNothingBelieved", promise: "I8", file: "internal/apicall/line.go",
		old: "if l.now != nil && l.now.asked {", new: "if l.now != nil {", tests: []string{calls},
	},
}
