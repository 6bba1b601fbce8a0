package openid

// Fill takes all places of requests to the provider.
func Fill(p *Provider) (leave func()) {
	for range cap(p.places) {
		p.places <- struct{}{}
	}
	return func() {
		for range cap(p.places) {
			<-p.places
		}
	}
}

// InUse is the number of taken places.
func InUse(p *Provider) int { return len(p.places) }
