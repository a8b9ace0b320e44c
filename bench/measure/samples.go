package measure

// Ratios returns how subject stands to base in each round, as far as both have
// samples. A disturbance that lasts for longer than a round is in neither.
func Ratios(subject, base []float64) []float64 {
	return pairwise(subject, base, func(a, b float64) float64 { return a / b })
}

// Each returns f of every sample.
func Each(samples []float64, f func(float64) float64) []float64 {
	return pairwise(samples, samples, func(a, _ float64) float64 { return f(a) })
}

func pairwise(a, b []float64, f func(a, b float64) float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = f(a[i], b[i])
	}
	return out
}
