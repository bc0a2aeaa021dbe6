package store_test

import (
	"crypto/rand"
	"sync/atomic"
	"testing"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

func BenchmarkAppendSQLite(b *testing.B)   { benchmarkAppend(b, storetest.SQLite(b)) }
func BenchmarkAppendPostgres(b *testing.B) { benchmarkAppend(b, storetest.Postgres(b)) }
func BenchmarkAppendMariaDB(b *testing.B)  { benchmarkAppend(b, storetest.MariaDB(b)) }

// benchmarkAppend appends rows of the shape and size of agent certificates from 64 goroutines.
func benchmarkAppend(b *testing.B, target storetest.Target) {
	s := storetest.OpenAt(b, store.Config{URL: target.URL})
	target.Create(b, s)
	der := make([]byte, 1000)
	if _, err := rand.Read(der); err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	b.SetParallelism(32) // times two cores: 64 goroutines
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			got, err := s.Append(b.Context(), storetest.Certificate, storetest.Row(n.Add(1), der))
			if err != nil || got.Outcome != store.Inserted {
				b.Errorf("append: %v, %v", got.Outcome, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
