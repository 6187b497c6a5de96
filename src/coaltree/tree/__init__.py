"""Rooted ultrametric trees and Kingman's coalescent."""
