package ca

import (
	"sync/atomic"
	"testing"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

// BenchmarkIssueAgent is a durable agent certificate from 64 goroutines on each database: a signature and a row, without
// the verification of the evidence.
func BenchmarkIssueAgent(b *testing.B) {
	for name, target := range targets {
		b.Run(name, func(b *testing.B) {
			benchmarkIssueAgent(b, open(b, store.Config{URL: target(b).URL}, newClock()).found(b))
		})
	}
}

func benchmarkIssueAgent(b *testing.B, w *world) {
	person := id.New(id.Person, w.now())
	principal := w.principal(b, person)
	agents := make([]string, 64)
	for n := range agents {
		agents[n] = id.New(id.Agent, w.now())
	}
	var turn atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := turn.Add(1)
			if _, err := w.IssueAgent(b.Context(), w.order(b, principal, person, agents[n%64], "")); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "certs/s")
}

// BenchmarkIssue is the same for ordinary certificates.
func BenchmarkIssue(b *testing.B) {
	w := newWorld(b)
	o := serverOrder(b, "dns:a.example.org")
	b.ReportAllocs()
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := w.Issue(b.Context(), o); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "certs/s")
}

// BenchmarkOCSP is an answer from memory (C8 in docs/performance.md).
func BenchmarkOCSP(b *testing.B) {
	w := newWorld(b)
	leaf := w.certificate(b, serverOrder(b, "dns:a.example.org"))
	question := pkixtest.Question(b, must(w.authority(b.Context(), "machines")).issuer.Cert, leaf.Serial, 3, -1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.OCSP(b.Context(), question); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRevokeAndList is one more revocation and the list with it, with 100,000 entries there (C8 in docs/performance.md).
func BenchmarkRevokeAndList(b *testing.B) {
	w := newWorld(b)
	const there, step = 100_000, 1_000
	end := w.now().Add(24 * time.Hour)
	for range there / step {
		err := w.db.Write(operator(b), func(tx *store.Tx) error {
			for range step {
				r := revocation{
					target: certificateTarget(newSerial()), kind: Certificate, reason: KeyCompromise, at: w.now(),
					authority: authorityTarget("machines"), notAfter: end.UnixMilli(),
				}
				if err := r.insert(tx, ""); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	w.Hierarchy.revoked.tell("")
	if _, err := w.CRL(b.Context(), "machines"); err != nil {
		b.Fatal(err)
	}
	leaves := make([]Issued, b.N)
	for n := range leaves {
		leaves[n] = w.certificate(b, serverOrder(b, "dns:a.example.org"))
	}
	b.ResetTimer()
	for _, leaf := range leaves {
		w.clock.advance(listPause)
		w.revoke(b, "crt:"+leaf.Serial.String(), KeyCompromise)
		l, err := w.CRL(b.Context(), "machines")
		if err != nil || len(l.DER) < 30*there {
			b.Fatalf("a list of %d octets, %v", len(l.DER), err)
		}
	}
}
