package mutants

// remote are mistakes in what is said to the service and the store, and in what is made of their answers.
var remote = []mutant{
	{
		name: "BudgetCheckedAfterTheDownload", promise: "I29", file: "internal/operator/download.go",
		old: "\tif f.Used, err = d.Ledger.IntendFetch(", new: "\t_, _, _ = d.Archive.Download(ctx, v, r, w)\n\tif f.Used, err = d.Ledger.IntendFetch(",
		tests: []string{"-run Fetch vaultd/internal/operator"},
	},
	{
		name: "BudgetCheckedBesideTheCommit", promise: "I29", file: "internal/ledger/boltledger/fetches.go",
		old: "used, err := fetchesInMonth(g.tx, m.mark.At, g.ledger.loc)", new: "used, err := g.ledger.CountFetches(m.mark.At)",
		tests: []string{"-run IntendFetch " + onDisk},
	},
	{
		name: "KnownNumberNotCompared", promise: "I4", file: "cmd/vaultd/fetch.go",
		old: "key, ok, err := v.ledger.FindByRemote(remote)", new: "key, ok, err := v.ledger.FindByRemote(remote + \"x\")", tests: []string{"-run TestFetch_ByNumber_Quarantined vaultd/cmd/vaultd"},
	},
	{
		name: "ComparedDocumentDownloadedAgain", promise: "I4", file: "internal/operator/download.go",
		old: "case s.Past.LastComparison(e.Vault, e.ArchivedRemote) != \"\":", new: "case false:", tests: []string{"-run Sample vaultd/internal/operator"},
	},
	{
		name: "NoIntentBeforeRegistering", promise: "I11", file: "internal/ingest/task.go",
		old:   "\tw.engine.cfg.Ledger.Submit(intents, func(rs []ledger.Result) {\n",
		new:   "\tgo w.do(work, t.entries)\n\tw.engine.cfg.Ledger.Submit(intents, func(rs []ledger.Result) {\n",
		tests: []string{engine, worlds},
	},
	{
		name: "CommitErrorOfAnIntentIgnored", promise: "I11", file: "internal/ingest/task.go",
		old: "if res.Err == nil && acting[res.Key] {\n\t\t\t\tt.acts = append(t.acts, res.Entry)", new: "if acting[res.Key] {\n\t\t\t\tt.acts = append(t.acts, t.entries[0])",
		tests: []string{engine, worlds},
	},
	{
		name: "MatchedByPosition", promise: "I8", file: "internal/vaultapi/register.go",
		old:   "\treturn m.matchRecords(list), nil",
		new:   "\tfor i := range list {\n\t\tif g, err := readGrant(list[i]); err == nil && i < len(frozen) && g.fields[\"archiveFileURL\"] != nil {\n\t\t\tlist[i] = fmt.Appendf(nil, `{\"bumId\":%q,\"clientUUID\":%q,\"archiveFileURL\":%s}`, g.remote, frozen[i].ID.String(), g.fields[\"archiveFileURL\"])\n\t\t}\n\t}\n\treturn m.matchRecords(list), nil",
		tests: []string{speech, readings},
	},
	{
		name: "SharedNumberBelieved", promise: "I8", file: "internal/vaultapi/register.go",
		old: "\t\tm.out.Crossed[id], m.out.Crossed[other] = crossNumber, crossNumber\n", new: "", tests: []string{speech, readings},
	},
	{
		name: "FailureTakenBackStillCounts", promise: "I23", file: "internal/ledger/ask.go",
		old: "if failed && e.Failures > 0 {", new: "if false && failed {", tests: []string{"-run Late vaultd/internal/ledger"},
	},
	{
		name: "FailingTokenEndpointAskedByEveryCall", promise: "I23", file: "internal/apicall/token.go",
		old: "\t\t\tt.current.keep = t.wire.now().Add(replaceAgain)\n\t\t}\n\t\treturn false", new: "\t\t}\n\t\treturn false", tests: []string{"-run OAuth vaultd/internal/apicall"},
	},
	{
		name: "SlowTokenGivenUp", promise: "I24", file: "internal/apicall/token.go",
		old: "replaceLimit = time.Minute", new: "replaceLimit = 10 * time.Second", tests: []string{"-run OAuth vaultd/internal/apicall"},
	},
	{
		name: "BumIDCaseCompared", promise: "I8", file: "internal/archive/id.go",
		old: "return RemoteID(id.String()), nil", new: "_ = id", tests: []string{"vaultd/internal/archive", speech, readings},
	},
	{
		name: "NumberOfAnotherEntryBelieved", promise: "I8", file: "internal/ingest/correct.go",
		old: `if e.State == ledger.Registering && taken.What != ledger.TakenID {`, new: "if false {", tests: []string{engine, readings, worlds},
	},
	{
		name: "FreshSignatureIsAnotherAddress", promise: "I8", file: "internal/archive/object.go",
		old: "if !isGrant(p.name, all) {", new: "if true {", tests: []string{"vaultd/internal/archive", speech},
	},
	{
		name: "KeyInTheQueryIgnored", promise: "I8", file: "internal/archive/object.go",
		old: "return host, key + \"?\" + strings.Join(objectParameters(p.RawQuery), \"&\"), true", new: "_ = objectParameters\n\treturn host, key, true",
		tests: []string{"vaultd/internal/archive", speech},
	},
	{
		name: "SharedAddressSentByItsFirstOwner", promise: "I8", file: "internal/ingest/upload.go",
		old: "if c.sharedTickets.has(e) && !wasSentBefore(e) {", new: "if false {", tests: []string{engine},
	},
	{
		name: "RedirectToAnotherObjectFollowed", promise: "I8", file: "internal/apicall/redirect.go",
		old: "if c.mayRedirect != nil && !c.mayRedirect(named.String()) {", new: "if false {", tests: []string{calls, worlds},
	},
	{
		name: "StatusOfAnotherDocumentBelieved", promise: "I8", file: "internal/ingest/ask.go",
		old: "if !rc.ID.IsZero() && !isOwnID(e, rc.ID) {", new: "if false {", tests: []string{engine, readings},
	},
	{
		name: "TicketCountsFromTheAnswer", promise: "I6", file: "internal/vaultapi/register.go",
		old: "base: archive.Ticket{Sent: before, Date: ans.Date()}", new: "base: archive.Ticket{Sent: func() archive.Instant { _ = before; return c.now() }(), Date: ans.Date()}",
		tests: []string{speech},
	},
	{
		name: "ExpiryByOurClock", promise: "I6", file: "internal/archive/ticket.go",
		old: "return t.SignedAt.Add(t.Validity).Sub(t.Date) - time.Second", new: "return t.Validity",
		tests: []string{"vaultd/internal/archive"},
	},
	{
		name: "TicketUsedBeyondTheWindow", promise: "I6", file: "internal/vaultapi/register.go",
		old: "m.out.Tickets[id] = ticket.LimitLife(m.window)", new: "m.out.Tickets[id] = ticket", tests: []string{speech},
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
		name: "DeadTokenKept403", promise: "I24", file: "internal/apicall/call.go",
		old: "refused := status == http.StatusUnauthorized || status == http.StatusForbidden", new: "refused := status == http.StatusUnauthorized",
		tests: []string{calls, readings},
	},
	{
		name: "TokenRenewedAtEveryRefusal", promise: "I23", file: "internal/apicall/token.go",
		old: "case n != failures, t.wire.now().Before(have.keep):", new: "case n != failures:", tests: []string{calls, readings},
	},
	{
		name: "RetryAfterStoredInTheDocument", promise: "I24", file: "internal/ingest/register.go",
		old: "ledger.RegisterUnanswered{NotBefore: again(e), Cause: causeOf(err)}", new: "ledger.RegisterUnanswered{NotBefore: again(e).Add(err.RetryAfter), Cause: causeOf(err)}",
		tests: []string{readings},
	},
	{
		name: "RetryAfterBeyondTheTicket", promise: "I6", file: "internal/ingest/upload.go",
		old:   "if wait <= 0 || !c.cfg.Planner.MayStart(e.Current().Ticket, e.Package.Size*int64(c.routeOf(e).Workers), nil, instantIn(now, wait)) {",
		new:   "if wait <= 0 {",
		tests: []string{readings},
	},
	{
		name: "SuccessEndsAnAskedWait", promise: "I24", file: "internal/ingest/breaker.go",
		old: "if known && (br.locked || now.Before(br.Asked)) {", new: "if known && br.locked {", tests: []string{engine},
	},
	{
		name: "OneBadNumberPausesTheVault", promise: "I23", file: "internal/ingest/ask.go",
		old: "\tcase fault.MayBeAbsent():\n\t\tq.unknownNumbers[r] = fault\n\t\tq.row++\n", new: "", tests: []string{engine, readings},
	},
	{
		name: "WrongPathBlamesTheDocuments", promise: "I24", file: "internal/ingest/absent.go",
		old: "if err != nil && !c.answersForAnother(ctx, vault, q) {", new: "if err != nil && len(q.unknownNumbers) == 0 {", tests: []string{engine, readings},
	},
	{
		name: "FaultThatHasPassedIsAbsence", promise: "I24", file: "internal/ingest/absent.go",
		old:   "\tfor r := range q.unknownNumbers {\n\t\tif rc, is := said[r]; is {\n",
		new:   "\tfor r := range q.unknownNumbers {\n\t\tq.heard[r] = archive.Receipt{Remote: r, Status: archive.Absent}\n\t\tif rc, is := said[r]; is {\n",
		tests: []string{engine},
	},
	{
		name: "WrongPathIsAbsenceInTheIndex", promise: "I32", file: "internal/recovery/absent.go",
		old: "s.CheckIndex(ctx, v) != nil {", new: "s.CheckIndex(ctx, v) == nil {", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "RefusedBatchRejectsAll", promise: "I23", file: "internal/ingest/register.go",
		old: "if n := len(asked); n > 1 {", new: "if n := len(asked); n < 0 {", tests: []string{engine, readings},
	},
	{
		name: "ForbiddenRejects", promise: "I24", file: "internal/ingest/register.go",
		old:   "\tcase apicall.NotSent, apicall.NotProcessed:",
		new:   "\tcase apicall.NotProcessed:\n\t\treturn c.splitRefusedBatch(asked, err)\n\tcase apicall.NotSent:",
		tests: []string{engine, readings, worlds},
	},
	{
		name: "RestingStoreWakesNobody", promise: "I24", file: "internal/ingest/register.go",
		old: "return 0, again\n", new: "_ = again\n\t\treturn 0, time.Time{}\n",
		tests: []string{engine},
	},
	{
		name: "RefusedForEver", promise: "I25", file: "internal/ingest/upload.go",
		old: "again = c.refusedPackageAt(e, again)", new: "_ = c.refusedPackageAt(e, again)", tests: []string{engine},
	},
	{
		name: "DamagedPackageSentAgain", promise: "I4", file: "internal/ingest/upload.go",
		old: "if err := d.Packer.RemovePackage(e); err != nil {", new: "if err := error(nil); err != nil {", tests: []string{engine, readings},
	},
	{
		name: "WrongBytesSentWhole", promise: "I4", file: "internal/apicall/content.go",
		old: "c.sent != c.want {", new: "c.sent != c.want && false {", tests: []string{speech, calls, readings},
	},
	{
		name: "DigestThatLeftIgnored", promise: "I4", file: "internal/ledger/remote.go",
		old: "err != nil || ev.Sent != e.Package.SHA256 || !e.Route.IsAsked() {", new: "err != nil || !e.Route.IsAsked() {", tests: []string{pure, engine},
	},
	{
		name: "SealOfWhatLeftIgnored", promise: "I4", file: "internal/proof/replay.go",
		old: "&& is != it.seal {", new: "&& is != it.seal && false {", tests: []string{"vaultd/internal/proof"},
	},
	{
		name: "EarlySuccessCounts", promise: "I12", file: "internal/apicall/store.go",
		old: "early := !c.use.answersContent(c.content)", new: "early := false", tests: []string{speech, calls, readings},
	},
	{
		name: "AnswerBeforeTheContentCounts", promise: "I12", file: "internal/apicall/tracked_conn.go",
		old: "return u.replied && c.isHandedOut()", new: "return c.isHandedOut()", tests: []string{calls},
	},
	{
		name: "ErrorDocumentBelieved", promise: "I12", file: "internal/apicall/store.go",
		old: "case isErrorDocument(start):", new: "case isErrorDocument(start) && false:", tests: []string{speech, calls, readings},
	},
	{
		name: "EarlyYesInTwoLayersCounts", promise: "I12", file: "internal/apicall/tracked_conn.go",
		old: "for secured, ok := c.(interface{ NetConn() net.Conn }); ok; secured, ok = c.(interface{ NetConn() net.Conn }) {",
		new: "if secured, ok := c.(interface{ NetConn() net.Conn }); ok {", tests: []string{calls},
	},
	{
		name: "WebPageIsAYes", promise: "I12", file: "internal/apicall/store.go",
		old: "\"text/html\"), isWebPage(start):", new: "\"text/html\") && false, isWebPage(start) && false:", tests: []string{"-run WebPage " + calls},
	},
	{
		name: "PageByItsTypeIsAYes", promise: "I12", file: "internal/apicall/store.go",
		old: `case len(start) > 0 && strings.HasPrefix(`, new: `case false && strings.HasPrefix(`, tests: []string{"-run WebPage " + calls},
	},
	{
		name: "EmptyPageIsNoYes", promise: "I12", file: "internal/apicall/store.go",
		old: `case len(start) > 0 && strings.HasPrefix(`, new: `case strings.HasPrefix(`, tests: []string{"-run WebPage " + calls},
	},
	{
		name: "HeldPackagesFillTheirVault", promise: "I23", file: "internal/ingest/backlog.go",
		old: "|| e.State > ledger.Sending || e.Hold || e.NeedsReconcile {", new: "|| e.State > ledger.Sending {", tests: []string{engine},
	},
	{
		name: "BlindToWhatBeginsBeside", promise: "I6", file: "internal/ingest/bookings.go",
		old: "\tc.underWay.by[e.Key] = c.cfg.Planner.BeginUpload(", new: "\tc.underWay.by[e.Key] = new(window.Planner).BeginUpload(", tests: []string{engine},
	},
	{
		name: "DoneTwiceByAnOldLook", promise: "I11", file: "internal/ingest/worker.go",
		old: "return w.busy[k] || w.ended[k]", new: "return w.busy[k]", tests: []string{engine},
	},
	{
		name: "RefusedAddressRejectsTheDocument", promise: "I24", file: "internal/ingest/register.go",
		old: "if !c.routeOf(asked[0]).RefusalPauses {", new: "if true {", tests: []string{engine},
	},
	{
		name: "UnansweredDeliveryRepeated", promise: "I2", file: "internal/ingest/upload.go",
		old: "return e.Route.IsAsked() || c.routeOf(e).RepeatsUpload", new: "return true", tests: []string{engine},
	},
	{
		name: "RegisteredAgainAfterAnUnknownDelivery", promise: "I2", file: "internal/ledger/remote.go",
		old: "e.enterQuarantine(DeliveryUnknown(e.Route, \"the time of", new: "e.enterState(Packaged)\n\t\t_ = (DeliveryUnknown(e.Route, \"the time of", tests: []string{pure},
	},
	{
		name: "RepeatedDeliveryUnflagged", promise: "I2", file: "internal/ledger/remote.go",
		old: "e.PossibleDouble, e.DuplicateConfirmed = true, true", new: "e.DuplicateConfirmed = true", tests: []string{engine},
	},
	{
		name: "FormerIdentityIsDamage", promise: "I5", file: "internal/ledger/boltledger/verifynames.go",
		old: " || given && e.PackedAnew", new: " || given && false", tests: []string{"-run TestUnsealed ./internal/ledger/boltledger"},
	},
	{
		name: "DeliveriesAnnouncedAhead", promise: "I2", file: "internal/ingest/route.go",
		old: "\t\tis.ahead, is.eager = 0, true\n", new: "\t\tis.ahead, is.eager = 256, true\n", tests: []string{engine},
	},
	{
		name: "ThreeRefusalsGoOn", promise: "I24", file: "internal/ingest/register.go",
		old: "return len(r.by[queue]) >= tolerated\n}\n\nfunc (r *refusals) isFull", new: "return false\n}\n\nfunc (r *refusals) isFull",
		tests: []string{engine, readings},
	},
	{
		name: "ETagIgnored", promise: "I4", file: "internal/ingest/upload.go",
		old: "return len(etag) != 32 || !c.md5ETags.Load()", new: "return true", tests: []string{engine, readings},
	},
	{
		name: "NoContentMD5", promise: "I4", file: "internal/apicall/package.go",
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
		tests: []string{engine, worlds},
	},
	{
		name: "CredentialsGoToSignedURLs", promise: "I20", file: "internal/apicall/policy.go",
		old: "\t\treturn !signed, p.checkScheme(u)\n", new: "\t\treturn true, p.checkScheme(u)\n",
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
		old: "if !viaProxy && !p.isConfigured(host, portName) {", new: "if false && !p.isConfigured(host, portName) {\n\t\t\t_ = viaProxy", tests: []string{calls},
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
		name: "AnswerSetsAnyHeader", promise: "I20", file: "internal/apicall/package.go",
		old: "if err := checkHeader(extra.Name, extra.Value); err != nil {", new: "if err := checkHeader(extra.Name, extra.Value); err != nil && extra.Name == \"\" {",
		tests: []string{speech},
	},
	{
		name: "WalkEndedByTheCursorAlone", promise: "I32", file: "internal/vaultapi/walk.go",
		old: "w.endWalk(\"its last page names no next page\")", new: "w.endWalk(\"\")", tests: []string{"-run TestIndex_I32 vaultd/cmd/vaultd"},
	},
	{
		name: "IncompleteIndexEndsWithZero", promise: "I32", file: "cmd/vaultd/index.go",
		old: "complete = complete && walked.Complete", new: "complete = complete || walked.Complete", tests: []string{"-run TestIndex_I32 vaultd/cmd/vaultd"},
	},
	{
		name: "WalkEndsAtAnUnmovedCursor", promise: "I32", file: "internal/vaultapi/walk.go",
		old: "w.endWalk(\"its last page names a next page that was read before\")", new: "w.endWalk(\"\")", tests: []string{speech},
	},
	{
		name: "OnlyTheCursorBeforeIsKnown", promise: "I32", file: "internal/vaultapi/walk.go",
		old: "w.cursors.Has(p.Cursor)", new: "p.Cursor == w.next", tests: []string{speech},
	},
	{
		name: "FoundIgnored", promise: "I32", file: "internal/vaultapi/walk.go",
		old: "max(r.Found, p.Found)", new: "max(r.Found, -1)", tests: []string{speech},
	},
	{
		name: "FoundOfOnePageBelieved", promise: "I32", file: "internal/vaultapi/walk.go",
		old: "case reached && (shorter && w.ahead ||", new: "case reached && (true || shorter ||", tests: []string{speech},
	},
	{
		name: "RepeatedDocumentsCountTwice", promise: "I32", file: "internal/vaultapi/walk.go",
		old: "= len(w.records), max(", new: "= r.Read+len(p.Records), max(", tests: []string{speech},
	},
	{
		name: "PagesWithoutEnd", promise: "I32", file: "internal/vaultapi/walk.go",
		old: "case w.pages >= mostPages ||", new: "case", tests: []string{speech},
	},
	{
		name: "AnyAnswerIsAnEmptyPage", promise: "I32", file: "internal/vaultapi/index.go",
		old: "if documents == nil && p.Found < 0 {", new: "if false {", tests: []string{speech},
	},
	{
		name: "ShortWalkClearsDoubt", promise: "I32", file: "internal/recovery/conclude.go",
		old: "if ok && !conclusive {", new: "if false && ok && !conclusive {", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "ShortWalkMissesDocuments", promise: "I32", file: "internal/recovery/conclude.go",
		old: "e.State == ledger.Archived && conclusive &&", new: "e.State == ledger.Archived && ok &&", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "SafeModeEndsAfterAShortWalk", promise: "I15", file: "internal/operator/reconcile.go",
		old: "out.Why = append(out.Why, out.Incomplete(c.Accept)...)\n", new: "", tests: []string{"-run Reconcile vaultd/internal/operator", "-run Reconcile vaultd/internal/daemon"},
	},
	{
		name: "AcceptedWhateverTheNumbers", promise: "I32", file: "internal/operator/accept.go",
		old: "return a.Vault == v.Vault && read >= a.Read && found-read <= a.Found-a.Read", new: "return a.Vault == v.Vault", tests: []string{"-run Reconcile|AcceptedIndex vaultd/internal/operator", "-run Reconcile|AcceptedIndex vaultd/internal/daemon"},
	},
	{
		name: "AcceptedIndexNotJournaled", promise: "I29", file: "internal/operator/accept.go",
		old: "err := c.Ledger.CommitMark(ctx, ", new: "err := func(context.Context, ledger.Mark, *ledger.Note) error { return nil }(ctx, ", tests: []string{"-run Reconcile vaultd/internal/operator", "-run Reconcile vaultd/internal/daemon"},
	},
	{
		name: "AcceptedIndexNotInTheAudit", promise: "I32", file: "internal/report/verdict.go",
		old: "range a.proof.Indexes {", new: "range a.proof.Indexes[:0] {", tests: []string{"-run Result vaultd/internal/report"},
	},
	{
		name: "ListThatTellsOfMoreIsWhole", promise: "I32", file: "internal/vaultapi/status_list.go",
		old: " && !reportsMore(ans.Body, len(raw))", new: "", tests: []string{speech},
	},
	{
		name: "LinkAmongEndedFoldersPassedOver", promise: "I32", file: "internal/drop/placed.go",
		old: "!yield(linkError(path.Join(string(kind), name)))", new: "top == nil", tests: []string{"vaultd/internal/recovery"},
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
		old: "if (r.Fate == MaybeStored || r.Fate == Stored) && e.isLatest(i) {", new: "if (r.Fate == MaybeStored || r.Fate == Stored) && e.isLatest(i) && i == len(e.Registrations)-1 {",
		tests: []string{pure, worlds},
	},
	{
		name: "NewsOfAListNotHeard", promise: "I2", file: "internal/ingest/ask.go",
		old: "return append(cs, c.changesOfOthers(said, es)...)", new: "_ = said\n\t\t\treturn cs", tests: []string{worlds},
	},
	{
		name: "ReconcileComparesCurrentOnly", promise: "I2", file: "internal/recovery/vault.go",
		old:   "\t\tp.noteContent(e, archive.Receipt{Remote: rec.Remote,",
		new:   "\t\tif c := e.Current(); c != nil && c.Ticket.Remote != rec.Remote {\n\t\t\tcontinue\n\t\t}\n\t\tp.noteContent(e, archive.Receipt{Remote: rec.Remote,",
		tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "MetadataOfTheIndexNotCompared", promise: "I4", file: "internal/recovery/metadata.go",
		old: "if archive.Sum(rec.Document.Metadata()) == e.Metadata {", new: "if true {", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "FieldLeftOutIsADifference", promise: "I4", file: "internal/recovery/metadata.go",
		old: "const fieldLeftOutDiffers = false", new: "const fieldLeftOutDiffers = true", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "EntryAtRestNeverMissed", promise: "I32", file: "internal/recovery/resting.go",
		old: "return !slices.ContainsFunc(r.shown[:]", new: "return true || !slices.ContainsFunc(r.shown[:]", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "EntryAtRestWhateverTheIndexSays", promise: "I4", file: "internal/recovery/resting.go",
		old: "metadata[:]...))", new: "metadata[:0]...))", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "DoubleOfAnEntryAtRestNotNamed", promise: "I2", file: "internal/recovery/news.go",
		old: "\tp.restless = append(p.restless, e.Key)\n", new: "", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "FieldAddedIsADifference", promise: "I4", file: "internal/recovery/metadata.go",
		old: "const fieldAddedDiffers = false", new: "const fieldAddedDiffers = true", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "AmountsComparedAsText", promise: "I4", file: "internal/recovery/metadata.go",
		old: "return a == b || x != nil && y != nil && x.Cmp(y) == 0", new: "_, _ = x, y\n\treturn a == b", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "RetentionNeverEnds", promise: "I32", file: "internal/recovery/conclude.go",
		old: "if v := &p.report.Vaults[i]; p.isRetentionOver(e) {", new: "if v := &p.report.Vaults[i]; false {", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "RetentionEndsADayEarly", promise: "I32", file: "internal/archive/retention.go",
		old: "time.Date(y+int(r), m, d, 0,", new: "time.Date(y+int(r), m, d-1, 0,", tests: []string{"-run Retention vaultd/internal/archive"},
	},
	{
		name: "RetentionByOurClockAlone", promise: "I32", file: "internal/recovery/conclude.go",
		old: "!told.IsZero() && told.Before(now)", new: "false && told.Before(now)", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "ReleaseWithoutAsking", promise: "I2", file: "internal/operator/release.go",
		old: "evs, err := a.askAboutAll(ctx, e)\n", new: "evs, err := []ledger.Event(nil), error(nil)\n", tests: []string{worlds},
	},
	{
		name: "ReleaseAfterSomeAnswers", promise: "I2", file: "internal/operator/release.go",
		old:   "\tif err != nil {\n\t\treturn ledger.Entry{}, fmt.Errorf(\"%w: %w\", ErrNotAsked, err)\n\t}\n",
		new:   "\tif err != nil {\n\t\tevs = nil\n\t}\n",
		tests: []string{worlds},
	},
	{
		name: "SuspendVoidsNothing", promise: "I6", file: "internal/window/window.go",
		old: "if !ok || gone < 0 || now.SleptSince(t.Sent) {", new: "if !ok || gone < 0 {", tests: []string{"vaultd/internal/window", engine},
	},
	{
		name: "TakenTwice", promise: "I2", file: "internal/ingest/pool.go",
		old: "\t\tif w.busy[e.Key] {\n", new: "\t\tif false && w.busy[e.Key] {\n", tests: []string{engine},
	},
	{
		name: "VaultsRegisterBesideEachOther", promise: "I6", file: "internal/ingest/worker.go",
		old: "\tif w.limit != nil {\n\t\t// What", new: "\tif false {\n\t\t// What", tests: []string{engine},
	},
	{
		name: "RoomToldToNoOtherQueue", promise: "I25", file: "internal/ingest/task.go",
		old: "\tw.engine.wakeWorkersWithoutRoom(w.name)\n", new: "", tests: []string{engine},
	},
	{
		name: "WorkerOfAnEmptyQueueNotStartedAgain", promise: "I25", file: "internal/ingest/worker.go",
		old: "\tif !w.running.Load() {\n\t\tw.engine.wakeSupervisor()\n", new: "\tif false {\n\t\tw.engine.wakeSupervisor()\n", tests: []string{engine},
	},
	{
		name: "PauseNotHeardInMidRound", promise: "I24", file: "internal/ingest/worker.go",
		old: "if !allowed { // it opened since findDue; the next search finds what needs another target", new: "if false && !allowed {", tests: []string{engine},
	},
	{
		name: "PauseNotHeardWhileWaiting", promise: "I24", file: "internal/ingest/task.go",
		old: "return open && !t.probe", new: "return false && open", tests: []string{engine},
	},
	{
		name: "AnswerToNothingBelieved", promise: "I8", file: "internal/apicall/tracked_conn.go",
		old: "if c.current != nil && c.current.asked {", new: "if c.current != nil {", tests: []string{calls},
	},
	{
		name: "StatusRecordUnbounded", promise: "I21", file: "internal/vaultapi/status.go",
		old: `"ask for the status", recordAnswer,`, new: `"ask for the status", 64<<20,`, tests: []string{speech, readings},
	},
	{
		name: "AnswersShareNoMemory", promise: "I21", file: "internal/apicall/memory.go",
		old: "size = min(size, allAnswers)\n", new: "size = 0\n", tests: []string{calls},
	},
	{
		name: "AnswerMemoryKept", promise: "I21", file: "internal/vaultapi/status_list.go",
		old: "\tdefer ans.Release()\n", new: "", tests: []string{speech},
	},
	{
		name: "AnswerKeysFolded", promise: "I12", file: "internal/apicall/lenient.go",
		old:   "\t\tif !slices.Contains(names, name) {\n",
		new:   "\t\tif i := slices.IndexFunc(names, func(n string) bool { return bytes.EqualFold([]byte(n), []byte(name)) }); i >= 0 {\n\t\t\tname = names[i]\n\t\t} else {\n",
		tests: []string{calls, speech, readings},
	},
	{
		name: "SecondValueOfAFieldCounts", promise: "I12", file: "internal/apicall/lenient.go",
		old: "twice && !bytes.Equal(had, value) {", new: "twice && !bytes.Equal(had, value) && false {", tests: []string{calls, speech},
	},
	{
		name: "DownloadIsRepeated", promise: "I11", file: "internal/apicall/apicall.go",
		old: "return c.callOnce(ctx, streamInto(w, into))", new: "return c.callWithRetries(ctx, streamInto(w, into))", tests: []string{calls},
	},
	{
		name: "DateIsNotSent", promise: "I20", file: "internal/apicall/apicall.go",
		old: "\tc.header.Set(\"Date\", a.wire.now().UTC().Format(http.TimeFormat))\n", new: "", tests: []string{calls},
	},
	{
		name: "PDFsBeginAllAtOnce", promise: "I21", file: "internal/ingest/limiters.go",
		old: "gently && l.isStarting(time.Now())", new: "gently && false", tests: []string{"-run PDFsBegin " + readings},
	},
	{
		name: "PDFsGoOnAtOnceAfterAPause", promise: "I21", file: "internal/ingest/limiters.go",
		old: " || now.Sub(l.lastUsed) > startPause", new: "", tests: []string{"-run FewCallsAfterAPause vaultd/internal/ingest", "-run PDFsBegin " + readings},
	},
	{
		name: "LifeOfAPDFAddressIgnored", promise: "I6", file: "internal/pdfapi/register.go",
		old: "\treturn t.LimitLife(longestLife)\n}", new: "\tt.Validity = 0\n\treturn t.LimitLife(longestLife)\n}", tests: []string{pdfs},
	},
	{
		name: "UntoldLifeOfAPDFIsAnHour", promise: "I6", file: "internal/pdfapi/register.go",
		old: "return t.LimitLife(untoldLife)\n", new: "return t.LimitLife(longestLife)\n", tests: []string{pdfs},
	},
	{
		name: "AnswerWithoutAnAddressIsARefusal", promise: "I9", file: "internal/pdfapi/register.go",
		old:   "\t\treturn archive.RegisterResult{}, ans.Unreadable(\"register\", errors.New(\"the answer gives no upload address\"))",
		new:   "\t\te := ans.Unreadable(\"register\", errors.New(\"the answer gives no upload address\"))\n\t\te.Outcome = apicall.Refused\n\t\treturn archive.RegisterResult{}, e",
		tests: []string{pdfs},
	},
	{
		name: "PDFNumberFromTheSignature", promise: "I8", file: "internal/pdfapi/register.go",
		old: "archive.Sum([]byte(address.Object()))", new: "archive.Sum([]byte(string(address)))", tests: []string{pdfs},
	},
	{
		name: "CredentialsOnAnUpload", promise: "I7", file: "internal/apicall/call.go",
		old: "\th.Del(\"Authorization\")\n", new: "\th.Set(\"Authorization\", \"Basic eDp5\")\n",
		tests: []string{pdfs},
	},
	{
		name: "ContentTypeOfTheTicketReplaced", promise: "I8", file: "internal/apicall/package.go",
		old: "\t\th.Set(extra.Name, extra.Value)\n\t}\n", new: "\t\th.Set(extra.Name, extra.Value)\n\t}\n\th.Set(\"Content-Type\", rules.ContentType)\n",
		tests: []string{speech},
	},
	{
		name: "LeftOutOfTheListIsAbsent", promise: "I23", file: "internal/ingest/ask.go",
		old:   "\t\t\trc, is := l.heard[r.Ticket.Remote]\n",
		new:   "\t\t\trc, is := l.heard[r.Ticket.Remote]\n\t\t\tif fresh && !is {\n\t\t\t\trc, is = archive.Receipt{Remote: r.Ticket.Remote, Status: archive.Absent}, true\n\t\t\t}\n",
		tests: []string{"-run AStatusListOfUploaded " + readings},
	},
	{
		name: "ConnectionsOfThePortUnbounded", promise: "I21", file: "internal/web/server.go",
		old: "netutil.LimitListener(l, maxConnections)", new: "netutil.LimitListener(l, 10*maxConnections)", tests: []string{"-run Bounded vaultd/internal/web"},
	},
	{
		name: "MainAccountForEveryVault", promise: "I7", file: "internal/vaultapi/vaultapi.go",
		old: "if account, ok := c.accounts[v]; ok {", new: "if account, ok := c.accounts[v]; ok && false {", tests: []string{speech, "-run Account " + readings},
	},
	{
		name: "AccountsShareTheirTokens", promise: "I7", file: "internal/apicall/apicall.go",
		old: "\tother.auth, err = newAuthorizer(auth, other.base, &other.wire)\n", new: "\tother.auth, err = newAuthorizer(auth, other.base, &other.wire)\n\tif err == nil && other.auth.tokens != nil && a.auth.tokens != nil {\n\t\tother.auth.tokens = a.auth.tokens\n\t}\n",
		tests: []string{"-run Account " + readings},
	},
	{
		name: "TwoAccountsOfOneVault", promise: "I7", file: "internal/config/rules.go",
		old: "d.Account != earlier.Account &&", new: `d.Account == "" &&`, tests: []string{"-run AccountFaults vaultd/internal/config"},
	},
	{
		name: "PlainTextOfAnAccountShown", promise: "I7", file: "internal/config/yaml.go",
		old: "|| at(1) == \"accounts\" || at(2) == \"accounts\"", new: "", tests: []string{"-run Account vaultd/internal/config vaultd/cmd/vaultd"},
	},
	{
		name: "ListOfVaultsRenewsTheToken", promise: "I24", file: "internal/apicall/apicall.go",
		old: "\t\tc.tokens = nil\n", new: "", tests: []string{"-run AnArchiveWithoutAListOfVaults " + readings},
	},
	{
		name: "ListOfVaultsAskedHourly", promise: "I24", file: "internal/daemon/vaultlist.go",
		old: "\t\td.cfg.Log.Info(\"the archive does not list its vaults, and nothing follows from that\", \"err\", err)\n\t\treturn listEvery",
		new: "\t\treturn listAgain", tests: []string{"-run AnArchiveWithoutAListOfVaults " + readings},
	},
	{
		name: "EmptyListOfVaultsBelieved", promise: "I24", file: "internal/daemon/vaultlist.go",
		old: "err != nil || len(listed) == 0", new: "err != nil", tests: []string{"-run AnArchiveWithoutAListOfVaults " + readings},
	},
	{
		name: "ContentTypeNotConfigured", promise: "I4", file: "cmd/vaultd/wire.go",
		old: ", ContentType: cfg.Upload.ContentType", new: "", tests: []string{"-run ContentType vaultd/cmd/vaultd"},
	},
}
