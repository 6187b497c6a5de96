"""Files of models, trees and results."""
