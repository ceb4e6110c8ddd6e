"""The function behind each layer of `torch.nn`: what its call does is what the function does."""

from __future__ import annotations

_LAYERS = """
F.relu ReLU
F.elu ELU
F.selu SELU
F.celu CELU
F.leaky_relu LeakyReLU
F.rrelu RReLU
F.gelu GELU
F.silu SiLU
F.mish Mish
F.softplus Softplus
F.softsign Softsign
F.softshrink Softshrink
F.hardshrink Hardshrink
F.tanhshrink Tanhshrink
F.threshold Threshold
torch.sigmoid Sigmoid
torch.tanh Tanh
F.softmax Softmax Softmax2d
F.softmin Softmin
F.log_softmax LogSoftmax
F.hardtanh Hardtanh ReLU6
F.hardswish Hardswish
F.hardsigmoid Hardsigmoid
F.logsigmoid LogSigmoid
F.glu GLU
F.prelu PReLU
F.dropout Dropout
F.dropout1d Dropout1d
F.dropout2d Dropout2d
F.dropout3d Dropout3d
F.alpha_dropout AlphaDropout
F.feature_alpha_dropout FeatureAlphaDropout
F.linear Linear LazyLinear
F.bilinear Bilinear
F.conv1d Conv1d LazyConv1d
F.conv2d Conv2d LazyConv2d
F.conv3d Conv3d LazyConv3d
F.conv_transpose1d ConvTranspose1d LazyConvTranspose1d
F.conv_transpose2d ConvTranspose2d LazyConvTranspose2d
F.conv_transpose3d ConvTranspose3d LazyConvTranspose3d
F.batch_norm BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm
F.instance_norm InstanceNorm1d InstanceNorm2d InstanceNorm3d
F.instance_norm LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
F.layer_norm LayerNorm
F.rms_norm RMSNorm
F.group_norm GroupNorm
F.local_response_norm LocalResponseNorm
F.avg_pool1d AvgPool1d
F.avg_pool2d AvgPool2d
F.avg_pool3d AvgPool3d
F.max_pool1d MaxPool1d
F.max_pool2d MaxPool2d
F.max_pool3d MaxPool3d
F.lp_pool1d LPPool1d
F.lp_pool2d LPPool2d
F.lp_pool3d LPPool3d
F.max_unpool1d MaxUnpool1d
F.max_unpool2d MaxUnpool2d
F.max_unpool3d MaxUnpool3d
F.fractional_max_pool2d FractionalMaxPool2d
F.fractional_max_pool3d FractionalMaxPool3d
F.adaptive_avg_pool1d AdaptiveAvgPool1d
F.adaptive_avg_pool2d AdaptiveAvgPool2d
F.adaptive_avg_pool3d AdaptiveAvgPool3d
F.adaptive_max_pool1d AdaptiveMaxPool1d
F.adaptive_max_pool2d AdaptiveMaxPool2d
F.adaptive_max_pool3d AdaptiveMaxPool3d
F.interpolate Upsample UpsamplingNearest2d UpsamplingBilinear2d
F.pixel_shuffle PixelShuffle
F.pixel_unshuffle PixelUnshuffle
F.channel_shuffle ChannelShuffle
F.pad ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d CircularPad1d CircularPad2d
F.pad CircularPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d
F.pad ReplicationPad1d ReplicationPad2d ReplicationPad3d
F.fold Fold
F.unfold Unfold
F.embedding Embedding
F.embedding_bag EmbeddingBag
F.multi_head_attention_forward MultiheadAttention
F.cosine_similarity CosineSimilarity
F.pairwise_distance PairwiseDistance
x.flatten Flatten
x.unflatten Unflatten
F.mse_loss MSELoss
F.l1_loss L1Loss
F.smooth_l1_loss SmoothL1Loss
F.huber_loss HuberLoss
F.cross_entropy CrossEntropyLoss
F.nll_loss NLLLoss NLLLoss2d
F.poisson_nll_loss PoissonNLLLoss
F.gaussian_nll_loss GaussianNLLLoss
F.binary_cross_entropy BCELoss
F.binary_cross_entropy_with_logits BCEWithLogitsLoss
F.kl_div KLDivLoss
F.ctc_loss CTCLoss
F.soft_margin_loss SoftMarginLoss
F.hinge_embedding_loss HingeEmbeddingLoss
F.margin_ranking_loss MarginRankingLoss
F.multi_margin_loss MultiMarginLoss
F.multilabel_margin_loss MultiLabelMarginLoss
F.multilabel_soft_margin_loss MultiLabelSoftMarginLoss
F.cosine_embedding_loss CosineEmbeddingLoss
F.triplet_margin_loss TripletMarginLoss
F.triplet_margin_with_distance_loss TripletMarginWithDistanceLoss
torch.rnn_tanh RNN
torch.rnn_tanh_cell RNNCell
torch.lstm LSTM
torch.lstm_cell LSTMCell
torch.gru GRU
torch.gru_cell GRUCell
"""
FUNCTIONS: dict[str, str] = {
    layer: function
    for function, *layers in (line.split() for line in _LAYERS.strip().splitlines())
    for layer in layers
}
